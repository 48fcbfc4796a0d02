"""Find that ranks of a job wait for each other for ever.

A rank whose threads and streams could go on only by the end of collectives tells the others so,
and of what it waits for. That stays true until one of its collectives goes on, which takes it back
first. So what several ranks say at one moment can be put together, and where each of them waits for
another one that waits itself, none of them can ever go on. A rank that runs, sleeps or is on another
machine says nothing, and nothing is said of those that wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._errors import IN_A_CIRCLE
from .._runtime import runtime
from . import peers as _peers
from . import waiters as _waiters
from .chain import SHOWN, Chain

__all__ = ["look", "tell"]

# For how long a rank leaves the others time to find the same, before its error ends it.
_PATIENCE_S = 1.0

# The progress at which this rank found a stall, and when.
_found: list[tuple[int, float]] = runtime.keep("stalls found across ranks", [])


def look(me: int) -> tuple[str, bool]:
    """Return why thread `me` can never go on because of other ranks, '' if it may, and whether to look again soon.

    What was found is returned once the other ranks of the circle have found it, too.
    """
    picture = _waiters.take(me)
    state = picture.ranks
    if state is None:
        return "", False
    hopeless = picture.hopeless(me, ranks=True) if state["waiting"] and not picture.native else set()
    if me not in hopeless:
        _peers.withdraw()
        return "", False
    own = _claim(state, Chain(picture, me, hopeless).of_this_process())
    progress = state["progress"]
    if not _peers.publish(progress, own, ""):
        return "", True
    claims = _claims(state, own)
    stuck = _stuck(claims)
    if own["token"] not in stuck or not _still_hold(state, claims, stuck):
        return "", False
    text = _text(own["token"], {token: claims[token] for token in stuck})
    if not _peers.publish(progress, own, text):
        return "", True
    others = [claims[token] for token in stuck if token != own["token"]]
    if not all(claim["found"] for claim in others) and _has_time(progress):
        return "", True
    return text, False


def tell(text: str) -> bool:
    """Tell the other ranks of a stall that is this rank's own; return True as long as they may need time to hear it.

    Parameters
    ----------
    text : str
        The stall's.
    """
    state = _peers.state()
    if state is None:
        return False
    lines = [line.strip() for line in text.splitlines()[1:] if line.startswith("  ")]
    own = _claim(state, lines)
    own["waiting"] = []
    if not _peers.publish(state["progress"], own, text):
        return False
    others = [claim for claim in _claims(state, own).values() if claim is not own]
    heard = len(others) == len(_world(state)) - 1 and all(claim["found"] for claim in others)
    return not heard and _has_time(state["progress"])


def _has_time(progress: int) -> bool:
    """Return True for a while after the first call about the same moment."""
    if not _found or _found[0][0] != progress:
        _found[:] = [(progress, time.monotonic())]
    return time.monotonic() - _found[0][1] < _PATIENCE_S


def _claim(state: Any, lines: list[str]) -> dict[str, Any]:
    """Return what this rank says of itself."""
    groups = {group["key"]: group for group in state["groups"]}
    told = {
        key: {
            "members": [member["token"] for member in group["members"]],
            **{name: group[name] for name in ("begun", "sent", "received")},
        }
        for key, group in groups.items()
    }
    waiting = [
        {name: one[name] for name in ("group", "title", "place", "number", "receives")} for one in state["waiting"]
    ]
    own = state["own"]
    return {
        "token": own["token"], "rank": own["rank"], "progress": state["progress"], "waiting": waiting,
        "groups": told, "lines": lines,
    }  # fmt: skip


def _world(state: Any) -> dict[int, Any]:
    """Return who the ranks are that this one shares a group with, by token."""
    return {member["token"]: member for group in state["groups"] for member in group["members"]}


def _claims(state: Any, own: dict[str, Any]) -> dict[int, Any]:
    """Return what the ranks that wait say of themselves, by token."""
    claims = {own["token"]: own}
    for token, one in _world(state).items():
        if token != own["token"] and (claim := _peers.read(one, state["own"]["machine"])) is not None:
            claims[token] = claim
    return claims


def _still_hold(state: Any, claims: Mapping[int, Any], stuck: set[int]) -> bool:
    """Return True if none of the ranks has gone on since it was read: then all of them waited at one moment."""
    world = _world(state)
    for token in stuck - {state["own"]["token"]}:
        again = _peers.read(world[token], state["own"]["machine"])
        if again is None or again["progress"] != claims[token]["progress"]:
            return False
    return True


def _stuck(claims: Mapping[int, Any]) -> set[int]:
    """Return the ranks that can never go on: each of their collectives waits for another one of them."""
    stuck = set(claims)
    changed = True
    while changed:
        changed = False
        for token in list(stuck):
            if not all(_missing(one, claims[token], claims, stuck) for one in claims[token]["waiting"]):
                stuck.discard(token)
                changed = True
    return stuck


def _missing(one: Any, waiter: Any, claims: Mapping[int, Any], among: set[int]) -> list[int]:
    """Return the ranks for which an operation of `waiter` waits; only those of `among` count."""
    found: list[int] = []
    members = waiter["groups"][one["group"]]["members"]
    if one["number"]:
        for token in members:
            if token in among and token != waiter["token"]:
                group = claims[token]["groups"].get(one["group"])
                if group is None or group["begun"] < one["number"]:
                    found.append(token)
    for peer, tag, number in one["receives"]:
        token = members[peer]
        if token in among and token not in found:
            group = claims[token]["groups"].get(one["group"], {"sent": []})
            sent = {(to, by): count for to, by, count in group["sent"]}
            if sent.get((members.index(waiter["token"]), tag), 0) < number:
                found.append(token)
    return found


def _text(me: int, claims: Mapping[int, Any]) -> str:
    """Return the report of rank `me`, from it on through the others."""
    order: list[int] = []
    at: int | None = me
    while at is not None and at not in order:
        order.append(at)
        one = next(iter(claims[at]["waiting"]), None)
        at = None if one is None else _missing(one, claims[at], claims, set(claims))[0]
    circle = at is not None
    order += [token for token in claims if token not in order]
    lines = [line for token in order[:SHOWN] for line in _lines(token, claims)]
    if len(order) > SHOWN:
        lines.append(f"{len(order) - SHOWN} more ranks wait")
    head = "this wait can never end: " + (IN_A_CIRCLE if circle else "everything that could end it waits, too")
    receives = [one for claim in claims.values() for one in claim["waiting"] if one["receives"]]
    advice = (
        "Let the other rank send what is received here, before it waits itself."
        if receives
        else "Let all ranks call the collectives that they share, in the same order."
    )
    return "\n".join([head, *("  " + line for line in lines), advice])


def _lines(token: int, claims: Mapping[int, Any]) -> list[str]:
    """Return the lines about a rank."""
    claim = claims[token]
    rank = f"rank {claim['rank']}"
    lines = []
    for one in claim["waiting"]:
        at = f", at {one['place']}," if one["place"] else ""
        names = sorted(claims[other]["rank"] for other in _missing(one, claim, claims, set(claims)))
        whom = f"rank{'s' * (len(names) > 1)} {', '.join(map(str, names))}"
        lines.append(f"{rank} waits in {one['title']}{at} for {whom}")
    shown = claim["lines"][:1] if claim["waiting"] else claim["lines"]
    return (
        lines
        + [f"{rank}: {line}" for line in shown]
        + [
            f"{rank} has sent to rank {claims[other]['rank']} what that has not received"
            for other in _unheard(token, claims)
        ]
    )


def _unheard(token: int, claims: Mapping[int, Any]) -> list[int]:
    """Return the ranks to which a rank has sent something that they have not begun to receive."""
    found = []
    for key, group in claims[token]["groups"].items():
        members = group["members"]
        for peer, tag, sent in group["sent"]:
            other = claims.get(members[peer])
            if other is not None and key in other["groups"]:
                received = {(by, tagged): count for by, tagged, count in other["groups"][key]["received"]}
                if received.get((members.index(token), tag), 0) < sent:
                    found.append(members[peer])
    return found
