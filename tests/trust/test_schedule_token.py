"""Tokens: short, printable, and refused with the reason when they cannot be used."""

from __future__ import annotations

import string

import hypothesis.strategies as st
import pytest
from halstream import ScheduleError
from halstream._schedules.token import KINDS, Hold, Token, _check, parse_spec, spec_text
from hypothesis import given

FINGERPRINT = "1a2b3c4d"

number = st.integers(1, 2**31 - 1)
holds = st.lists(
    st.tuples(number, number, st.integers(0, 2**31 - 1), number).filter(lambda h: h[0] != h[2]),
    min_size=1,
    max_size=20,
).map(lambda items: tuple(Hold(*item) for item in items))
plain = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.tuples(*(st.integers(least, most) for _, least, most in KINDS[kind])))
)
tokens = st.builds(
    lambda pair, value: Token(pair[0], pair[1], f"{value:08x}"),
    plain | st.tuples(st.just("holds"), holds),
    st.integers(0, 2**32 - 1),
)


@given(tokens)
def test_a_token_reads_back_as_what_was_written(token: Token) -> None:
    text = str(token)
    assert Token.parse(text) == token
    assert Token.parse(f"  {text}\n") == token
    assert set(text) <= set(string.ascii_letters + string.digits + "-._+")


@given(tokens)
def test_a_spec_reads_back_as_what_was_written(token: Token) -> None:
    assert parse_spec(token.spec) == (token.kind, token.parameters)
    assert spec_text(token.kind, token.parameters) == token.spec


def test_tokens_are_short() -> None:
    assert str(Token("fifo", (), FINGERPRINT)) == "hs1-fifo-1a2b3c4d-8f"
    assert str(Token("pct", (7, 3, 240), FINGERPRINT)) == "hs1-pct-7.3.240-1a2b3c4d-95"
    three = Token("holds", (Hold(2, 1, 1, 1), Hold(1, 4, 0, 12), Hold(3, 2, 2, 9)), FINGERPRINT)
    assert len(str(three)) <= 40


@given(tokens, st.data())
def test_one_changed_character_is_found(token: Token, data: st.DataObject) -> None:
    text = str(token)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-._+").filter(lambda c: c != text[place]))
    with pytest.raises(ScheduleError):
        Token.parse(text[:place] + other + text[place + 1 :])


@given(tokens, st.data())
def test_two_characters_that_changed_places_are_found(token: Token, data: st.DataObject) -> None:
    text = str(token)
    # Of the text before the check digits: one in 251 that has one of these digits fits by chance.
    last = len(text) - len("-00") - 1
    first = data.draw(st.integers(0, last - 1))
    second = data.draw(st.integers(first + 1, min(last, first + 200)))
    swapped = list(text)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    if "".join(swapped) != text:
        with pytest.raises(ScheduleError):
            Token.parse("".join(swapped))


@given(tokens, st.integers(1, 80))
def test_a_cut_token_is_refused(token: Token, length: int) -> None:
    text = str(token)
    # Of a random rest one in 251 has check digits that fit, but none has all parts.
    with pytest.raises(ScheduleError):
        Token.parse(text[: max(0, len(text) - length)])


def signed(body: str) -> str:
    return f"{body}-{_check(body)}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a token"),
        ("latest", "is not a token"),
        ("hs1", "is not a token"),
        ("0123-pct-1", "is not a token"),
        (signed("hs2-fifo-1a2b3c4d"), "version hs2"),
        ("hs1-fifo-1a2b3c4d-00", "damaged: its check digits"),
        (signed("hs1-fastest-1a2b3c4d"), "'fastest', which is unknown"),
        (signed("hs1-parallel-1a2b3c4d"), "'parallel', which is unknown"),
        (signed("hs1-fifo"), "a part is missing"),
        (signed("hs1-pct-1a2b3c4d"), "a part is missing"),
        (signed("hs1-fifo-7-1a2b3c4d"), "a part is missing"),
        (signed("hs1-pct-7.3-1a2b3c4"), "a part is missing"),
        (signed("hs1-pct-7-1a2b3c4d"), "written pct(seed, depth, steps)"),
        (signed("hs1-pct-7.0.240-1a2b3c4d"), "depth of pct is 0; it goes from 1 to 64"),
        (signed("hs1-pct-x.3.240-1a2b3c4d"), "whole numbers"),
        (signed(f"hs1-random-{2**63}-1a2b3c4d"), "seed of random is 9223372036854775808"),
        (signed("hs1-starve-0-1a2b3c4d"), "stream of starve is 0"),
        (signed("hs1-holds-!!!!-1a2b3c4d"), "cannot be read"),
        (signed("hs1-holds-AQEB-1a2b3c4d"), "ends within one"),
        (signed("hs1-holds-AQEBgQ-1a2b3c4d"), "ends within a number"),
        (signed("hs1-holds-AQEBAA-1a2b3c4d"), "not from 1"),
        (signed("hs1-holds-AQEBAQ-1a2b3c4d"), "of a stream for itself"),
        (signed("hs1-holds-gICAgICAgICA-1a2b3c4d"), "out of range"),
        (signed("hs1-random-" + "9" * 6000 + "-1a2b3c4d"), "..."),
    ],
)  # fmt: skip
def test_errors_in_a_token_are_named(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Token.parse(text)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("fifo", "fifo"),
        (" latest ", "latest"),
        ("random(7)", "random 7"),
        ("random 7", "random 7"),
        ("pct(7, 3)", "pct 7 3 100"),
        ("pct 7 3 240", "pct 7 3 240"),
        ("starve( 2 )", "starve 2"),
        ("holds 1.2>h3, 2.1>1.4", "holds 1.2>h3,2.1>1.4"),
    ],
)
def test_schedules_can_be_written_as_calls_or_as_words(text: str, spec: str) -> None:
    assert spec_text(*parse_spec(text)) == spec


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no schedule ''; give fifo, earliest"),
        ("Fifo", "there is no schedule"),
        ("parallel", "there is no schedule"),
        ("fifo(1)", "fifo takes no numbers"),
        ("random", "written random(seed)"),
        ("random -1", "whole numbers"),
        ("random 1.5", "whole numbers"),
        ("pct 1 0", "depth of pct is 0"),
        ("holds", "'' is no hold"),
        ("holds 1.1>x", "'1.1>x' is no hold"),
        ("holds 0.1>h1", "not from 1"),
        ("holds 1.1>h0", "not from 1"),
        ("holds 1.1>1.2", "of a stream for itself"),
    ],
)
def test_errors_in_a_schedule_are_named(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_spec(text)
    assert reason in str(caught.value)
