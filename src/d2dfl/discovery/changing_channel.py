"""A channel that changes: what it is when datapoints move, and what devices know of that when they choose (Section VI-N).

R45: nobody knows the channel of the exchange when links are chosen. Draws are independent, so the past tells no more than
their distribution: methods plan with its mean loss. Right before the exchange a device measures the level of each of its
links, the state by which the paper's policies choose, and nothing finer.

With `channel.trace` the draws are moments of a recording: at the exchange it is one of them, for all links the same, and what is known
of a link is the mean over what was recorded of it.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from d2dfl.config import ChannelConfig
from d2dfl.discovery.methods import Method
from d2dfl.network import Network, channel
from d2dfl.network.graph import Graph
from d2dfl.network.traces import traced_power
from d2dfl.rng import stream

QUADRATURE = 2001


def known_to(method: Method, network: Network, config: ChannelConfig) -> Network:
    """The network as a method sees it when it chooses links: as it will be at the exchange for a reference, or where the channel rests."""
    return as_known(network, config) if config.dynamic and not method.reference else network


def at_exchange(network: Network, config: ChannelConfig, seed: int) -> Network:
    """The network at the moment when the datapoints move: one more draw of every link."""
    if config.trace:
        moments = traced_power(config, network.candidates)
        return network.with_drop(moments[stream(seed, "dynamic-exchange").integers(len(moments))], config)
    power = stream(seed, "dynamic-exchange").normal(config.mean, config.power_deviation, network.candidates.shape)
    return network.with_drop(power.clip(config.lowest, config.highest), config)


def as_known(network: Network, config: ChannelConfig) -> Network:
    """The network at the exchange as its devices know it when they choose their links (R45).

    Received power is that of the middle of each link's level. Losses are means over the channel's draws, or with
    channel.plan=levels over those in the link's level; with channel.plan=exact they are what nobody could know.
    """
    if config.plan == "exact":
        return network
    if config.trace:
        return _as_recorded(network, config)
    level = channel.quantise(network.rss, config)
    middle = config.lowest + (np.arange(config.levels) + 0.5) / config.levels * (config.highest - config.lowest)
    means = _mean_losses(config, middle)
    drop = np.where(network.candidates >= 0, means[level], 1.0)
    return replace(network, rss=np.asarray(middle[level]), drop=drop)


def _as_recorded(network: Network, config: ChannelConfig) -> Network:
    """The mean loss of each link over the recording, or over those of its moments in which the link had the level that it has now."""
    moments = traced_power(config, network.candidates)
    loss = channel.drop_probability(moments, config.rate, channel.noise_power(config))
    counts = np.ones_like(loss)
    if config.plan == "levels":
        counts = (channel.quantise(moments, config) == channel.quantise(network.rss, config)).astype(np.float64)
    mean = (loss * counts).sum(axis=0) / counts.sum(axis=0)  # the moment of the exchange is one of them: never 0 / 0
    power = (moments * counts).sum(axis=0) / counts.sum(axis=0)
    return replace(network, rss=power, drop=np.where(network.candidates >= 0, mean, 1.0))


def _mean_losses(config: ChannelConfig, middle: NDArray[np.float64]) -> NDArray[np.float64]:
    """[level] what a device that knows the level expects to lose; one mean for all unless it plans by levels."""
    from scipy.stats import norm

    def loss(power: NDArray[np.float64]) -> NDArray[np.float64]:
        return channel.drop_probability(power, config.rate, channel.noise_power(config))

    grid = norm.ppf((np.arange(QUADRATURE) + 0.5) / QUADRATURE, config.mean, max(config.power_deviation, 1e-12))
    grid = grid.clip(config.lowest, config.highest)
    if config.plan == "expected":
        return np.full(config.levels, float(loss(grid).mean()))
    place = channel.quantise(grid, config)
    draws = np.bincount(place, minlength=config.levels)
    total = np.bincount(place, loss(grid), minlength=config.levels)
    return np.where(draws > 0, total / np.maximum(draws, 1), loss(middle))  # a level that is never drawn: its middle


def with_losses(graph: Graph, network: Network) -> Graph:
    """The same links and datapoints with the losses of this network: what was planned meets the channel as it is."""
    receivers = np.arange(graph.devices)[:, None]
    return replace(graph, drop=np.where(graph.slots >= 0, network.drop[receivers, graph.slots], 0.0))
