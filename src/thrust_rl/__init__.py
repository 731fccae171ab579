"""thrust-rl: reinforcement learning for tasks where the observation hides what matters."""

from thrust_rl.config import ARMS as ARMS
from thrust_rl.config import ArmConfig as ArmConfig
from thrust_rl.config import ConfigError as ConfigError
from thrust_rl.config import PPOConfig as PPOConfig
from thrust_rl.config import TrainConfig as TrainConfig
from thrust_rl.envs.core import FunctionalEnv as FunctionalEnv
from thrust_rl.envs.registry import ENVIRONMENTS as ENVIRONMENTS
from thrust_rl.envs.registry import make as make
from thrust_rl.experiment.compare import compare as compare
from thrust_rl.experiment.comparison import ArmResult as ArmResult
from thrust_rl.experiment.comparison import Comparison as Comparison
from thrust_rl.experiment.jobs import SeedResult as SeedResult
from thrust_rl.experiment.runner import RunError as RunError
from thrust_rl.training.train import TrainingError as TrainingError
from thrust_rl.training.train import TrainResult as TrainResult
from thrust_rl.training.train import train as train

__version__ = "0.1.0"
