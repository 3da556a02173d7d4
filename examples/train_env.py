"""Independent Q-learning on the PettingZoo environment, beside the learners that come with d2dfl.

Every device keeps one value per action (the game has one state while the channel stands still), explores less and less,
and knows nothing of the others: Claus and Boutilier's independent learners (1998). The same learner is trained on each of
the three rewards. Needs the extra `env`; takes about half a minute.
"""

import numpy as np

from d2dfl import Network, discover, preset
from d2dfl.discovery.discover import NEGOTIATION
from d2dfl.discovery.evaluation import share_of
from d2dfl.env import GraphDiscovery

STEPS, RATE, SEEDS = 5000, 0.1, 3
CONFIG = preset("best").with_(**{"discovery.edges": 1, "optimum.starts": 4})


def train(network: Network, reward: str, seed: int) -> tuple[float, float]:
    """Objective of the graph that the devices agree on in the end, and messages a device."""
    env = GraphDiscovery(CONFIG, network, reward=reward, steps=STEPS)
    observations, _ = env.reset(seed=seed)
    agents, rng, messages = env.agents, np.random.default_rng(seed), 0.0
    legal = np.stack([observations[agent]["action_mask"] for agent in agents]) == 1
    value = np.where(legal, 0.0, -np.inf)
    everyone = np.arange(len(agents))
    for step in range(STEPS):
        greedy = value.argmax(axis=1)
        curious = rng.random(len(agents)) < 1 - (step + 1) / STEPS  # nobody in the last step
        tried = np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1)
        action = np.where(curious, tried, greedy)
        _, rewards, _, _, infos = env.step(dict(zip(agents, action.tolist(), strict=True)))
        earned = np.array([rewards[agent] for agent in agents])
        value[everyone, action] += RATE * (earned - value[everyone, action])
        messages += sum(info["messages"] for info in infos.values())
    messages += NEGOTIATION * len(env.graph.edges)
    return infos[agents[0]]["global"], messages / len(agents)


def main() -> None:
    """Mean over networks of the share of the best known objective, and of the messages a device."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for seed in range(SEEDS):
        network = Network.generate(CONFIG, seed)
        found = {
            name: discover(network, CONFIG, seed=seed, method=name) for name in ("qlearning", "marginal", "optimum")
        }
        results = {name: (one.evaluation.objective, one.messages / network.devices) for name, one in found.items()}
        for reward in ("local", "global", "marginal"):
            results[f"independent Q, {reward} reward"] = train(network, reward, seed)
        best = max(objective for objective, _ in results.values())
        none = found["optimum"].evaluation.no_exchange
        for name, (objective, messages) in results.items():
            rows.setdefault(name, []).append((share_of(objective, best, none), messages))
    print(f"{CONFIG.network.devices} devices, one link each, {SEEDS} networks, {STEPS} steps")
    for name, pairs in rows.items():
        if name != "optimum":  # the yardstick; it sends nothing
            shares, messages = zip(*pairs, strict=True)
            print(f"{name:32s} share {np.mean(shares):6.3f}   messages a device {np.mean(messages):9,.0f}")


if __name__ == "__main__":
    main()
