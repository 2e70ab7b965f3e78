"""The model of a run that names none, and the prompts that the puppet gets in every run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent_hooks import SettingsError, UserMessage, load_settings
from agent_hooks.cli.choosing import DEFAULTS, choose_model
from agent_hooks.host.models import KEY_VARIABLES, model_for, open_model
from agent_hooks.host.models.puppet import NO_MODEL
from model_server import KEY, ModelServer, Say
from running import Command


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person that runs the tests may have keys."""
    for name in {name for names in KEY_VARIABLES.values() for name in names}:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Give a model server, and the variables of a person who has a key of OpenAI."""
    with ModelServer() as running:
        for name, value in running.environment("openai").items():
            monkeypatch.setenv(name, value)
        yield running


def choose_in_settings(home: Path, model: object) -> Path:
    """Write the person's settings."""
    path = home / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"model": model}))
    return path


def test_the_model_of_the_settings_answers_where_none_is_named(
    command: Command, home: Path, server: ModelServer
) -> None:
    """In print mode too: the person has chosen it."""
    choose_in_settings(home, "openai:mine")
    server.play(Say("From the model."))
    assert command("run", "--no-session", "hello").stdout == "From the model.\n"
    assert server.requests[0].body["model"] == "mine"
    assert command("run", "--no-session", "--model", "puppet", "hello").stdout == "hello\n"


def test_a_project_does_not_choose_the_model(command: Command, home: Path, server: ModelServer) -> None:
    """It could send the code elsewhere; a warning names the key."""
    settings = command.project / ".agent" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "openai:theirs"}')
    done = command("run", "--no-session", "hello")
    assert done.stdout == "hello\n"
    assert "the key 'model' counts only in your own settings" in done.stderr
    assert server.requests == []


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        # The packages of a provider take seconds to import.
        pytest.param("ANTHROPIC_API_KEY", f"anthropic:{DEFAULTS['anthropic']}", marks=pytest.mark.slow),
        ("OPENAI_API_KEY", f"openai:{DEFAULTS['openai']}"),
        pytest.param("GEMINI_API_KEY", f"google:{DEFAULTS['google']}", marks=pytest.mark.slow),
    ],
)
def test_at_a_terminal_the_provider_whose_key_is_set_answers_and_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    """The sentence names model, variable, receiver and how to choose another one; elsewhere it is the puppet."""
    monkeypatch.setenv(variable, KEY)
    model, note = choose_model(None, at_terminal=True)
    assert f"{model.provider}:{model.id}" == name
    assert note is not None
    for part in (name, variable, f"go to {name.partition(':')[0]}", "--model", "/model", '"model" in'):
        assert part in note
    assert choose_model(None, at_terminal=False).model.provider == "puppet"


def test_the_address_of_another_server_is_named_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person reads where the prompts go."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@models.example/v1")
    note = choose_model(None, at_terminal=True).note
    assert note is not None
    assert "go to openai, at http://models.example/v1;" in note
    assert "secret" not in note


def test_a_key_without_the_packages_of_models_leaves_the_puppet(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says how to install them."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setitem(sys.modules, "agent_hooks.host.models.openai", None)
    model, note = choose_model(None, at_terminal=True)
    assert model.provider == "puppet"
    assert note is not None
    assert "OPENAI_API_KEY is set, but openai models need pip install 'agent-hooks-runtime[models]'" in note


def test_the_puppet_says_at_the_first_prompt_that_it_is_no_model(command: Command) -> None:
    """On stderr, once in a conversation, and not for a prompt that makes it call a tool; a chosen one says nothing."""
    said = f"warning: {NO_MODEL}\n"
    assert said in command("run", "hello").stderr
    assert said not in command("run", "--continue", "hello again").stderr
    assert said not in command("run", "--no-session", "@bash true").stderr
    assert said not in command("run", "--no-session", "--model", "puppet", "hello").stderr
    assert "--model anthropic:NAME" in NO_MODEL


def test_at_a_terminal_without_a_key_the_puppet_is_announced_at_once(home: Path) -> None:
    """The sentence stands above the first prompt."""
    model, note = choose_model(None, at_terminal=True)
    assert model.provider == "puppet"
    assert note == NO_MODEL


def test_a_prompt_that_begins_with_a_tool_goes_to_the_puppet(command: Command, home: Path, server: ModelServer) -> None:
    """Whichever model is chosen, and nothing is sent; the name of no tool is a text for the model."""
    choose_in_settings(home, "openai:mine")
    for more in ([], ["--model", "openai:other"]):
        done = command("run", "--no-session", *more, "@bash echo hi\n---\n@ls")
        assert done.stdout.startswith("1. bash echo hi\n   hi\n2. ls")
    assert server.requests == []
    server.play(Say("A file."))
    assert command("run", "--no-session", "@readme.md says what?").stdout == "A file.\n"


@pytest.mark.slow
def test_a_conversation_goes_on_with_the_model_after_a_call_by_hand(
    command: Command, home: Path, server: ModelServer
) -> None:
    """The model gets the call and its result as a part of the conversation."""
    choose_in_settings(home, "openai:mine")
    command("run", "@bash echo forty-two")
    server.play(Say("I see."))
    assert command("run", "--continue", "What did it print?").stdout == "I see.\n"
    assert "forty-two" in json.dumps(server.requests[0].body)


def test_a_text_that_a_hook_passes_on_never_becomes_a_call() -> None:
    """It may be a text of others; only the person's own prompts go to the puppet."""
    model = open_model("puppet")

    class Real:
        provider = "real"
        id = "model"
        stream = model.stream

    own = UserMessage(content="@bash true", timestamp=0)
    of_hook = UserMessage(content="@bash true", timestamp=0, source="hook.py")
    context = UserMessage(content="@bash true", timestamp=0, is_context=True)
    assert model_for(Real(), [own], ["bash"]).provider == "puppet"
    assert model_for(Real(), [own, context], ["bash"]).provider == "puppet"
    assert model_for(Real(), [own, of_hook], ["bash"]).provider == "real"
    assert model_for(Real(), [context], ["bash"]).provider == "real"
    assert model_for(Real(), [own], ["read"]).provider == "real"
    assert model_for(Real(), [], ["bash"]).provider == "real"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (3, "key 'model': expected a text or null, found 3"),
        (" ", "key 'model': expected a model such as 'anthropic:NAME', found an empty text"),
        ("opnai:x", "key 'model': there is no model 'opnai:x'; did you mean 'openai'?"),
        ("openai:x", "key 'model': there is no key: set the environment variable OPENAI_API_KEY"),
    ],
)
def test_a_wrong_model_in_the_settings_names_the_file_and_the_key(home: Path, model: object, says: str) -> None:
    """No run begins, so nothing is sent."""
    path = choose_in_settings(home, model)
    with pytest.raises(SettingsError) as caught:
        choose_model(None, at_terminal=True)
    assert str(caught.value) == f"{path}: {says}"
    with pytest.raises(click.UsageError, match="--model nothing"):
        choose_model("nothing", at_terminal=True)


def test_null_in_the_settings_chooses_no_model(home: Path) -> None:
    """This is the default of the example."""
    choose_in_settings(home, None)
    assert load_settings(cwd=home / "x").model is None
    assert choose_model(None, at_terminal=False).model.provider == "puppet"


def test_the_default_models_have_a_known_window() -> None:
    """A typing error in a name would compact too early."""
    assert all(open_window(kind, name) >= 100_000 for kind, name in DEFAULTS.items())


def open_window(kind: str, name: str) -> int:
    """Return the window of a model in the list of prices, 0 when it is not there."""
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider_model(name, None, kind, None)[1].context_window or 0


def test_the_settings_name_the_thinking_level_of_a_new_session(command: Command, home: Path) -> None:
    """A session that is gone on with has its own; a project's settings do not count."""
    (home / ".agent").mkdir(exist_ok=True)
    (home / ".agent" / "settings.json").write_text('{"thinking": "high"}')

    def levels() -> list[str]:
        (path,) = (command.project / ".agent" / "sessions").glob("*.jsonl")
        entries = map(json.loads, path.read_text().splitlines())
        return [each["thinkingLevel"] for each in entries if each["type"] == "thinking_level_change"]

    command("run", "hello")
    assert levels() == ["high"]
    command("run", "--continue", "--thinking", "low", "hello")
    command("run", "--continue", "hello")
    assert levels() == ["high", "low"]
    (command.project / ".agent" / "settings.json").write_text('{"thinking": "off"}')
    assert "the key 'thinking' counts only in your own settings" in command("run", "--no-session", "hello").stderr


def test_a_project_does_not_choose_the_level_of_caution(command: Command) -> None:
    """Its settings could only loosen; the option is for the mode in which a person answers."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text('{"caution": "work"}')
    done = command("run", "hello")
    assert "the key 'caution' counts only in your own settings" in done.stderr
    assert "--caution is for interactive mode" in command("run", "hello", "--caution", "ask", code=2).stderr
