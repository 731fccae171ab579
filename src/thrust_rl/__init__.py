"""thrust-rl: reinforcement learning for tasks where the observation hides what matters."""

import jax

from thrust_rl.config import ARMS as ARMS
from thrust_rl.config import ArmConfig as ArmConfig
from thrust_rl.config import ConfigError as ConfigError
from thrust_rl.config import PPOConfig as PPOConfig
from thrust_rl.config import TrainConfig as TrainConfig
from thrust_rl.config import arm_from as arm_from
from thrust_rl.envs.batch import StepResult as StepResult
from thrust_rl.envs.core import FullyObserved as FullyObserved
from thrust_rl.envs.core import FunctionalEnv as FunctionalEnv
from thrust_rl.envs.faults import EnvError as EnvError
from thrust_rl.envs.named import make as make
from thrust_rl.envs.observation import Flicker as Flicker
from thrust_rl.envs.observation import Mask as Mask
from thrust_rl.envs.pool import EnvPool as EnvPool
from thrust_rl.envs.register import register_environments as register_environments
from thrust_rl.envs.registry import ENVIRONMENTS as ENVIRONMENTS
from thrust_rl.envs.stateful import CartPole as CartPole
from thrust_rl.envs.stateful import FlickeringCartPole as FlickeringCartPole
from thrust_rl.envs.stateful import MaskedCartPole as MaskedCartPole
from thrust_rl.envs.stateful import Snapshot as Snapshot
from thrust_rl.envs.stateful import StatefulEnv as StatefulEnv
from thrust_rl.envs.task import HostTask as HostTask
from thrust_rl.envs.task import VectorTask as VectorTask
from thrust_rl.experiment.compare import compare as compare
from thrust_rl.experiment.comparison import ArmResult as ArmResult
from thrust_rl.experiment.comparison import Comparison as Comparison
from thrust_rl.experiment.jobs import SeedResult as SeedResult
from thrust_rl.experiment.runner import RunError as RunError
from thrust_rl.memory.lstm import LSTMMemory as LSTMMemory
from thrust_rl.policies.configs import LSTMConfig as LSTMConfig
from thrust_rl.policies.configs import MLPConfig as MLPConfig
from thrust_rl.policies.facades import LSTMPolicy as LSTMPolicy
from thrust_rl.policies.facades import MLPPolicy as MLPPolicy
from thrust_rl.policies.facades import sample_actions as sample_actions
from thrust_rl.policies.scoring import score as score
from thrust_rl.rollout.buffers import RecurrentRolloutBuffer as RecurrentRolloutBuffer
from thrust_rl.rollout.buffers import RolloutBuffer as RolloutBuffer
from thrust_rl.rollout.normalizers import ObsNormalizer as ObsNormalizer
from thrust_rl.rollout.normalizers import RunningMeanStd as RunningMeanStd
from thrust_rl.training.checkpoint import Checkpoint as Checkpoint
from thrust_rl.training.checkpoint import load_checkpoint as load_checkpoint
from thrust_rl.training.checkpoint import save_checkpoint as save_checkpoint
from thrust_rl.training.curve import LearningCurve as LearningCurve
from thrust_rl.training.evaluate import Episodes as Episodes
from thrust_rl.training.evaluate import evaluate as evaluate
from thrust_rl.training.keeping import Checkpoints as Checkpoints
from thrust_rl.training.learner import TrainStats as TrainStats
from thrust_rl.training.learning_rate import annealed_learning_rate as annealed_learning_rate
from thrust_rl.training.result import TrainingError as TrainingError
from thrust_rl.training.result import TrainResult as TrainResult
from thrust_rl.training.train import train as train
from thrust_rl.training.trainers import PPOTrainer as PPOTrainer
from thrust_rl.training.trainers import RecurrentPPOTrainer as RecurrentPPOTrainer

__version__ = "0.1.0"

jax.config.update("jax_cpu_enable_async_dispatch", False)  # docs/decisions/0012; to undo it, set True before computing
register_environments()  # gymnasium.make("thrust/CartPole-v1") and its siblings
