"""Federation: local steps on all devices and the mixing schedules between them."""

from d2dfl.config import FederationConfig
from d2dfl.federation.federated import Federated
from d2dfl.federation.losses import LOSSES, Loss, triplet
from d2dfl.federation.models import EMBEDDING, MODELS, default_encoder, default_model, model_named
from d2dfl.federation.schemes import SCHEMES, Scheme
from d2dfl.federation.state import Curves, State
from d2dfl.federation.training import Starts, check_training, embeddings, model_of, start, train, train_many

__all__ = [
    "EMBEDDING",
    "LOSSES",
    "MODELS",
    "SCHEMES",
    "Curves",
    "Federated",
    "FederationConfig",
    "Loss",
    "Scheme",
    "Starts",
    "State",
    "check_training",
    "default_encoder",
    "default_model",
    "embeddings",
    "model_named",
    "model_of",
    "start",
    "train",
    "train_many",
    "triplet",
]
