"""Profiles: runs of different size, kept apart by folders of the same name (`results/PROFILE`,
`figures/PROFILE`, `executed/PROFILE`).

Built in are `smoke` (minutes, for tests), `default` (what `make all` runs, and a notebook that is
opened by hand), `full` (real data, the models in packages, trainings of hours) and `paper` (the
papers' own scale). `own/NAME` is never committed. It is a reader's own file
`notebooks/params/own/NAME.yaml`, or a built-in profile with other parameters (`PARAMS=`, or a value
that was changed by hand).
"""

SMOKE, DEFAULT = "smoke", "default"
BUILT_IN = (SMOKE, DEFAULT, "full", "paper")
COMMITTED = ("full", DEFAULT)  # whose results git keeps, the larger first
_OWN = "own/"


def is_own(profile: str) -> bool:
    """Whether a profile is a reader's own file."""
    return profile.startswith(_OWN) and not is_override(profile)


def is_override(profile: str) -> bool:
    """Whether a profile is a built-in one with other parameters, such as `own/smoke`."""
    return profile.startswith(_OWN) and profile.removeprefix(_OWN) in BUILT_IN


def overridden(profile: str) -> str:
    """`own/smoke` for `smoke`, where other parameters write to; ValueError if not built in."""
    if profile not in BUILT_IN:
        told = f"what differs in {profile!r} belongs into notebooks/params/{profile}.yaml"
        raise ValueError(f"PARAMS changes {', '.join(BUILT_IN)}; {told}")
    return _OWN + profile


def lineage(profile: str) -> tuple[str, ...]:
    """Profiles in which results are looked for, nearest first, such as `own/smoke`, `smoke`."""
    if is_override(profile):
        return (profile, *lineage(profile.removeprefix(_OWN)))
    return (profile, DEFAULT) if profile == "full" or is_own(profile) else (profile,)


def larger(profile: str) -> tuple[str, ...]:
    """The profiles whose committed results say more than a run in this one, the largest first."""
    return COMMITTED[: COMMITTED.index(profile)] if profile in COMMITTED else ()
