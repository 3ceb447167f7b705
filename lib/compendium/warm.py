"""Notebooks start warm: what they import is imported once, and each runs in a fork of that process.

A notebook takes two processes, one that runs papermill and one that is its kernel, which both would
import for seconds. Here the scheduler imports and forks (`Forked`) for each notebook; this child
forks at once its kernel-to-be, which waits until Jupyter asks for a kernel (`Provisioner`). They
share imported modules, and nothing that happens afterwards.

Linux only: the libraries of macOS may not be used after a fork.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from compendium import codebase

# a hash seed of its own for each process would be one for all: `make` sets it to 0
POSSIBLE = sys.platform == "linux" and not sys.flags.hash_randomization
_NAME = "compendium-warm"
# what every run needs beside its notebook's own imports
_ALWAYS = "import papermill, ipykernel.kernelapp, ipykernel.ipkernel, matplotlib.pyplot, pandas"


class Forked:
    """A child of this process, with the part of `subprocess.Popen` that Jupyter uses."""

    stdin = stdout = stderr = None

    def __init__(self, work: Callable[[], int]) -> None:
        self.returncode: int | None = None
        self.cpu_seconds = 0.0
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                code = work()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = used.ru_utime + used.ru_stime
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        while self.poll() is None:
            time.sleep(0.02)
        return self.returncode or 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Provisioner(LocalProvisioner):
    """Gives Jupyter the kernel that was forked ahead, in place of a fresh process."""

    waiting: tuple[Forked, int] | None = None  # the kernel-to-be, and the pipe that it listens to

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        if Provisioner.waiting is None:
            return await super().launch_kernel(cmd, **kwargs)
        kernel, pipe = Provisioner.waiting
        self.process = cast(Any, kernel)
        Provisioner.waiting = None
        order = {"arguments": cmd[cmd.index("-f") :], "environment": kwargs["env"]}
        with os.fdopen(pipe, "w") as file:
            json.dump(order | {"folder": str(kwargs.get("cwd") or os.getcwd())}, file)
        self.pid = self.pgid = kernel.pid
        self.cwd = kwargs.get("cwd")
        return self.connection_info


def import_for(notebooks: Iterable[Path]) -> None:
    """Import what these notebooks import; what fails here fails in the notebook, which says so."""
    code = [ast.parse(_ALWAYS).body, *(codebase.parse(path).body for path in notebooks)]
    for statement in (statement for body in code for statement in body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            try:
                exec(compile(ast.Module([statement], []), "<imports>", "exec"), {})
            except Exception:
                continue


def fork_kernel() -> None:
    """Fork the kernel of the notebook to run, before this process has threads or sockets."""
    hears, tells = os.pipe()
    parent = os.getpid()

    def become_kernel() -> int:
        os.close(tells)
        os.setsid()
        with os.fdopen(hears) as pipe:
            order = pipe.read()
        if not order:  # the parent has ended without asking for a kernel
            return 0
        _start_kernel(json.loads(order), parent)
        return 0

    Provisioner.waiting = (Forked(become_kernel), tells)
    os.close(hears)
    factory = KernelProvisionerFactory.instance()
    place = f"{__name__}:{Provisioner.__name__}"
    factory.provisioners[_NAME] = EntryPoint(_NAME, place, KernelProvisionerFactory.GROUP_NAME)
    factory.default_provisioner_name = _NAME


def _start_kernel(order: dict[str, Any], parent: int) -> None:
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = ["ipykernel_launcher", *order["arguments"]]
    if sys.path[0] in ("", order["folder"]):  # the launcher of a kernel drops it, too
        del sys.path[0]
    from ipykernel.kernelapp import IPKernelApp

    arguments = [*order["arguments"], f"--IPKernelApp.parent_handle={parent}"]
    IPKernelApp.launch_instance(argv=arguments)
