"""Faults that patch modules, builtins and the clock."""

from __future__ import annotations

from chaos.faults.fault import INLINE, Fault

BUILTIN = "every function of Python uses it"
AGENT = "the agent itself uses it"

ASYNCIO = ("*/inline/asyncio/*",)
# Where the agent does more than to wrap tools.
BESIDE = ("*/inline/*/host", "*/inline/*/server")

FAIL = 'def fail(*args, **options): raise ValueError("patched")'


def _patch(
    name: str,
    imports: str,
    targets: str,
    *,
    to: str = "fail",
    ends: str = "",
    where: tuple[str, ...] = INLINE,
    waits: bool = False,
) -> Fault:
    """Return the fault that imports modules and sets names in them, by default to a function that raises."""
    lines = [f"import {module}" for module in imports.split()] + [f"{target} = {to}" for target in targets.split()]
    return Fault(name, "\n".join([FAIL, *lines]), ends=ends, where=where, waits=waits)


FAULTS = (
    _patch("patches json", "json", "json.dumps json.loads json.dump json.load"),
    _patch(
        "patches asyncio",
        "asyncio",
        "asyncio.sleep asyncio.create_task asyncio.wait_for asyncio.Event",
        ends=AGENT,
        where=ASYNCIO,
    ),
    _patch(
        "patches anyio",
        "anyio",
        "anyio.sleep anyio.CancelScope anyio.create_task_group anyio.Event",
        ends="the agent waits with it",
    ),
    _patch(
        "patches msgspec",
        "msgspec msgspec.json",
        "msgspec.json.encode msgspec.json.decode msgspec.to_builtins msgspec.convert",
        ends=AGENT,
    ),
    _patch(
        "patches open",
        "builtins",
        "builtins.open",
        ends="the server opens the files of other sessions",
        where=("*/inline/*/server",),
    ),
    _patch("patches print", "builtins", "builtins.print"),
    _patch("patches len", "builtins", "builtins.len", ends=BUILTIN),
    _patch(
        "patches isinstance to say yes",
        "builtins",
        "builtins.isinstance",
        to="lambda *_: True",
        ends=BUILTIN,
        waits=True,
    ),
    _patch("patches imports", "builtins", "builtins.__import__", ends=BUILTIN),
    _patch("patches the time", "time", "time.time", to="lambda: -1.0"),
    _patch("patches the clock to stand", "time", "time.monotonic", to="lambda: 0.0"),
    _patch("patches os.path", "os.path", "os.path.join os.path.abspath os.path.exists", ends=AGENT, where=BESIDE),
    _patch(
        "patches os.write", "os", "os.write", to="lambda file, data: 0", ends="every write of the agent goes through it"
    ),
    _patch("patches os.environ", "os", "os.environ", to="None", ends=AGENT, where=BESIDE),
    _patch(
        "patches subprocess",
        "subprocess",
        "subprocess.Popen subprocess.run",
        ends="the tool itself starts its program with it",
        where=("*/inline/*/host",),
    ),
    _patch(
        "patches selectors",
        "selectors",
        "selectors.DefaultSelector.select",
        to="lambda *_: []",
        ends="the event loop waits with it",
        waits=True,
    ),
    _patch(
        "patches threading",
        "threading",
        "threading.Thread.start threading.Lock",
        ends=AGENT,
        where=("*/inline/*/host",),
    ),
    _patch("patches inspect to say no", "inspect", "inspect.isawaitable", to="lambda _: False"),
    _patch(
        "patches the excepthooks",
        "sys threading",
        "sys.excepthook threading.excepthook sys.unraisablehook sys.displayhook",
    ),
    Fault(
        "purges agent_hooks from sys.modules",
        """
        for name in [n for n in sys.modules if n.startswith("agent_hooks")]:
            del sys.modules[name]
        """,
    ),
    Fault(
        "answers with classes of a second agent_hooks",
        """
        for name in [n for n in sys.modules if n.startswith("agent_hooks")]:
            del sys.modules[name]
        import agent_hooks
        return agent_hooks.Block("second")
        """,
    ),
    Fault(
        "empties sys.modules",
        "sys.modules.clear()",
        ends=AGENT,
    ),
    Fault(
        "empties sys.path",
        """
        sys.path.clear()
        sys.meta_path.clear()
        sys.path_hooks.clear()
        sys.path_importer_cache.clear()
        """,
        ends="the agent imports modules when they are needed",
        where=("*/inline/*/host", "*/inline/*/wrapped"),
    ),
    Fault(
        "hooks into async generators",
        """
        def fail(*args, **options): raise ValueError("patched")
        sys.set_asyncgen_hooks(firstiter=fail, finalizer=fail)
        """,
        ends=AGENT,
    ),
    Fault(
        "changes a class of agent_hooks",
        """
        import agent_hooks
        agent_hooks.Block.__init__ = agent_hooks.HookContext.__init__ = None
        """,
    ),
)
