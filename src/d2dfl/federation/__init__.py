"""Federation: local steps on all devices and the mixing schedules between them."""

from d2dfl.config import FederationConfig
from d2dfl.federation.federated import Federated
from d2dfl.federation.losses import LOSSES, Loss, triplet
from d2dfl.federation.models import EMBEDDING, MODELS, default_encoder, default_model, model_named
from d2dfl.federation.room import IN_MEMORY, Room, room_for
from d2dfl.federation.schemes import SCHEMES, Scheme
from d2dfl.federation.state import Curves, State
from d2dfl.federation.training import (
    Starts,
    check_training,
    embeddings,
    model_of,
    parameters_of,
    start,
    train,
    train_many,
)

__all__ = [
    "EMBEDDING",
    "IN_MEMORY",
    "LOSSES",
    "MODELS",
    "SCHEMES",
    "Curves",
    "Federated",
    "FederationConfig",
    "Loss",
    "Room",
    "Scheme",
    "Starts",
    "State",
    "check_training",
    "default_encoder",
    "default_model",
    "embeddings",
    "model_named",
    "model_of",
    "parameters_of",
    "room_for",
    "start",
    "train",
    "train_many",
    "triplet",
]
