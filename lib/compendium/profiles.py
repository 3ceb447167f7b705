"""Profiles: runs of different size, kept apart by folders of the same name (`results/PROFILE`,
`figures/PROFILE`, `executed/PROFILE`).

Built in are `smoke` (minutes, for tests), `default`, `models` (on top of `default`: notebooks that
can ask a released model of 135 M parameters), `hour` and `paper` (full scale). Never committed are
`lab`, of a notebook run by hand, and `own/NAME`: a reader's own file `params/own/NAME.yaml`, or a
built-in profile with `PARAMS=` in force.
"""

from __future__ import annotations

SMOKE, MODELS = "smoke", "models"
BUILT_IN = (SMOKE, "default", MODELS, "hour", "paper")
COMMITTED = ("hour", MODELS, "default")  # whose results git keeps, the larger first
LAB = "lab"
# chapter -> first digits of its notebooks; what a scan cannot say, and what a placebo does, stand
# beside the first
CHAPTERS = {"bottleneck": ("1", "5"), "margins": ("2", "6"), "circuits": ("3",), "hardmax": ("4",)}
_OWN = "own/"


def is_own(profile: str) -> bool:
    """Whether a profile is a reader's own file."""
    return profile.startswith(_OWN) and not is_override(profile)


def is_override(profile: str) -> bool:
    """Whether a profile is a built-in one with `PARAMS=` in force, such as `own/smoke`."""
    return profile.startswith(_OWN) and profile.removeprefix(_OWN) in BUILT_IN


def overridden(profile: str) -> str:
    """The profile that a run with `PARAMS=` writes to: `own/smoke` for `smoke`; ValueError for one
    that is not built in.
    """
    if profile not in BUILT_IN:
        raise ValueError(
            f"PARAMS changes {', '.join(BUILT_IN)}; what differs in {profile!r} belongs into "
            f"params/{profile}.yaml"
        )
    return _OWN + profile


def lineage(profile: str) -> tuple[str, ...]:
    """Profiles in which results are looked for, nearest first, such as `own/smoke`, `smoke`."""
    if is_override(profile):
        return (profile, profile.removeprefix(_OWN))
    return (profile, "default") if profile in (LAB, MODELS) or is_own(profile) else (profile,)


def below(profile: str) -> str:
    """The profile in which a notebook's inputs are made: `models` asks what `default` trained."""
    return "default" if profile == MODELS else profile


def larger(profile: str) -> tuple[str, ...]:
    """The profiles whose committed results say more than a run in this one, the largest first."""
    if profile not in COMMITTED:
        return ()
    return COMMITTED[: COMMITTED.index(profile)]
