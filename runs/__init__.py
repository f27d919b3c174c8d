"""A run as a library: configuration, plan, calibration, training, certificate, comparison.

>>> from dpledger.runs import DEMO, plan
>>> planned = plan(DEMO)
>>> len(planned.events), round(planned.noise_multiplier, 2)
(37, 23.34)
>>> planned.guarantee.epsilon <= 1
True

Names are loaded when they are asked for; everything else is importable from its module.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .attack import RunAttack as RunAttack
    from .attack import run_attack as run_attack
    from .claims import judge_claim_file as judge_claim_file
    from .claims import judge_finished_run as judge_finished_run
    from .configuration import DEMO as DEMO
    from .configuration import Configuration as Configuration
    from .configuration import demo_configuration as demo_configuration
    from .configuration import read_configuration as read_configuration
    from .execution import run as run
    from .models import read_model as read_model
    from .pipeline import Plan as Plan
    from .pipeline import Terms as Terms
    from .pipeline import calibrate as calibrate
    from .pipeline import calibrate_proved as calibrate_proved
    from .pipeline import plan_at as plan_at
    from .planning import plan as plan
    from .results import RunOptions as RunOptions
    from .results import RunResult as RunResult
    from .statistics import release_statistics as release_statistics

__getattr__, __dir__ = names_from(__name__)
