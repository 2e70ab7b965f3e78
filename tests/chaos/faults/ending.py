"""Faults that end the process."""

from __future__ import annotations

from chaos.faults.fault import Fault

GONE = "the process ends at once"
SIGNAL = "the signal ends the process"
ORDERLY = "the signal asks the agent to end, as from a person"

SEGFAULT = """
import ctypes
ctypes.string_at(0)
"""


def _signal(name: str, signal: str, *, ends: str = "") -> Fault:
    """Return the fault that sends a signal to its own process, and waits for its end."""
    code = f"""
        import signal
        os.kill(os.getpid(), signal.{signal})
        time.sleep(0.2)
        """
    return Fault(name, code, ends=ends)


FAULTS = (
    Fault("calls os._exit(0)", "os._exit(0)", ends=GONE),
    Fault("calls os.abort", "os.abort()", ends=GONE),
    Fault("segfaults", SEGFAULT, ends=GONE),
    Fault("segfaults in a thread", SEGFAULT, "def", ends=GONE),
    _signal("kills itself", "SIGKILL", ends=SIGNAL),
    Fault(
        "kills its process group",
        """
        import signal
        os.killpg(os.getpgrp(), signal.SIGKILL)
        """,
        ends=SIGNAL,
    ),
    _signal("sends itself SIGTERM", "SIGTERM", ends=ORDERLY),
    _signal("sends itself SIGINT", "SIGINT", ends=ORDERLY),
    _signal("sends itself SIGUSR1", "SIGUSR1", ends=SIGNAL),
    _signal("sends itself SIGPIPE", "SIGPIPE"),
    Fault(
        "sets an alarm",
        """
        import signal
        signal.alarm(1)
        time.sleep(1.2)
        """,
        ends=SIGNAL,
    ),
    Fault(
        "interrupts the main thread",
        """
        import _thread
        _thread.interrupt_main()
        time.sleep(0.1)
        """,
        "def",
        ends=ORDERLY,
    ),
    Fault(
        "raises SystemExit in the main thread",
        """
        import ctypes
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(threading.main_thread().ident), ctypes.py_object(SystemExit))
        time.sleep(0.1)
        """,
        "def",
        ends="the exception comes out of code of the agent",
    ),
    Fault(
        "becomes another program",
        'os.execv("/bin/true", ["true"])',
        ends=GONE,
    ),
    Fault(
        "dumps its traceback and exits",
        """
        import faulthandler
        faulthandler.dump_traceback_later(0.1, exit=True)
        time.sleep(0.3)
        """,
        ends=GONE,
        noisy=True,
    ),
    Fault(
        "ends with the signal handler of Python",
        """
        import signal
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        while True:
            time.sleep(0.01)
        """,
    ),
    Fault(
        "forks a child that exits",
        """
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        """,
    ),
    Fault(
        "forks a child that returns",
        "os.fork()",
    ),
    Fault(
        "forks a child that returns in a thread",
        "os.fork()",
        "def",
    ),
    Fault(
        "forks a child that raises",
        """
        if not os.fork():
            raise ValueError("child")
        """,
    ),
    Fault(
        "forks ten children that return",
        """
        for _ in range(10):
            if not os.fork():
                break
        """,
    ),
    Fault(
        "fails at each fork",
        """
        def fail(): raise ValueError
        os.register_at_fork(before=fail, after_in_parent=fail, after_in_child=fail)
        """,
        noisy=True,
    ),
)
