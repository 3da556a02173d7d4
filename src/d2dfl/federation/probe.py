"""Linear evaluation (R37): how well classes can be told apart by a linear classifier on a frozen encoder's outputs."""

import torch
from torch import Tensor
from torch.nn import functional

RIDGE = 1.0  # weight of the squared weights beside the sum of the losses, as usual (biases are free)
STEPS = 100  # Newton's method takes about ten
COARSE = 10  # Newton's first steps see every tenth datapoint
CLOSE = 1e-9  # twice the distance to the minimum at which it stops; the sum of the losses is of the size of n
NEAR = 1e-4  # the same before a whole step that leads there: distances are squared from step to step


def linear_accuracy(train: Tensor, labels: Tensor, test: Tensor, test_labels: Tensor) -> float:
    """Accuracy on test outputs [m, d] of the logistic regression on training outputs [n, d]; NaN where one is NaN."""
    if not bool(torch.isfinite(train).all() and torch.isfinite(test).all()):
        return torch.nan
    return float((linear_answers(train, labels, test) == test_labels).double().mean())


def linear_answers(train: Tensor, labels: Tensor, test: Tensor) -> Tensor:
    """The labels [m] that it gives test outputs [m, d]; those of an encoder that gives no numbers are all -1."""
    if not bool(torch.isfinite(train).all() and torch.isfinite(test).all()):
        return torch.full((len(test),), -1)
    mean, deviation = _moments(train.double())
    classes, numbers = torch.unique(labels, return_inverse=True)
    weights = logistic_regression((train.double() - mean) / deviation, numbers)
    logits = _with_one((test.double() - mean) / deviation) @ weights.T
    answers: Tensor = classes[logits.argmax(dim=1)]
    return answers


def logistic_regression(features: Tensor, labels: Tensor) -> Tensor:
    """Weights [class, d + 1], the bias last, of the multinomial logistic regression of classes 0, 1, ...

    Minimises the sum of the cross-entropies plus RIDGE / 2 times the squared weights, which makes the minimum one
    point (up to a constant in all biases) even where classes are separable or features are copies of each other.
    Newton's method: with d = 8 its matrix is small, and it is exact after about ten steps. From the minimum for every
    tenth datapoint it takes three or four.
    """
    inputs = _with_one(features)
    wanted = functional.one_hot(labels).to(inputs)
    weights = inputs.new_zeros(wanted.shape[1], inputs.shape[1])
    if bool((wanted[::COARSE].sum(dim=0) >= COARSE).all()):  # else the bias of a class that is not there has no minimum
        weights = _minimum(inputs[::COARSE], wanted[::COARSE], weights)
    return _minimum(inputs, wanted, weights)


def _minimum(inputs: Tensor, wanted: Tensor, weights: Tensor) -> Tensor:
    """Newton's method from given weights, with smaller steps where a whole one does not pay."""
    penalty = torch.full_like(weights, RIDGE)
    penalty[:, -1] = 0

    def loss(at: Tensor) -> Tensor:
        logits = inputs @ at.T
        return (logits.logsumexp(dim=1) - (logits * wanted).sum(dim=1)).sum() + (penalty * at.square()).sum() / 2

    value = loss(weights)
    for _ in range(STEPS):
        shares = (inputs @ weights.T).softmax(dim=1)
        gradient = (shares - wanted).T @ inputs + penalty * weights
        factor = torch.linalg.cholesky(_hessian(inputs, shares, penalty))
        step = torch.cholesky_solve(gradient.reshape(-1, 1), factor).view_as(weights)
        decrement = (gradient * step).sum()
        if decrement < CLOSE:
            break
        size, found = 1.0, loss(weights - step)
        while size > 1e-9 and found > value - 1e-4 * size * decrement:
            size /= 2
            found = loss(weights - size * step)
        weights, value = weights - size * step, found
        if size == 1 and decrement < NEAR:
            break
    return weights


def _hessian(inputs: Tensor, shares: Tensor, penalty: Tensor) -> Tensor:
    """[class * (d + 1), class * (d + 1)]: X' (diag(p_k) [k = l] - p_k p_l) X, and the penalty."""
    classes = shares.shape[1]
    weighted = shares.unsqueeze(2) * inputs.unsqueeze(1)  # [n, class, d + 1]
    flat = weighted.flatten(1)
    hessian = torch.diag(penalty.flatten()) - flat.T @ flat
    blocks = hessian.view(classes, inputs.shape[1], classes, inputs.shape[1])
    for own in range(classes):
        blocks[own, :, own] += weighted[:, own].T @ inputs
    bias = (penalty == 0).to(inputs).flatten()
    return hessian + torch.outer(bias, bias)  # one bias is free: their sum stays zero


def _with_one(features: Tensor) -> Tensor:
    return torch.cat([features, features.new_ones(len(features), 1)], dim=1)


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each column; a column that says nothing beyond the rounding of float32 becomes zero."""
    mean = features.mean(dim=0)
    deviation = features.std(dim=0, correction=0)
    silent = deviation <= 1e-6 * features.abs().amax(dim=0)
    return mean, deviation.masked_fill(silent, torch.inf)
