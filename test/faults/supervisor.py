#!/usr/bin/env python3
"""Runs a program whose system calls fail as the caller asks, or are recorded. Needs Python 3.9 and Linux 5.5, and
neither root, nor ptrace, nor a compiler: the kernel asks this process about each call (seccomp, user notification).

    python3 supervisor.py SPEC PROGRAM [ARGUMENT ...]

SPEC is JSON:

    under     only calls on paths in this directory count
    report    file for the result: the number of calls by name, and those that failed
    calls     the calls that fail: names of CALLS; empty to count all of them
    error     such as EIO
    after     calls that succeed first
    times     calls that fail then; null for every later call, as on a full disk
    armed     whether it begins with the program, or with SIGUSR1; SIGUSR2 ends it
    record    null, or a file for every change: a line of JSON each, and the written bytes in FILE.data

A recorded sync is done here, so that its line says that it has ended. It exits as the program does.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import signal
import socket
import struct
import sys
import time

# The number on x86_64 and on aarch64, and the kind of argument that says which file it is.
CALLS = {
    "write": (1, 64, "fd"),
    "writev": (20, 66, "fd"),
    "pwrite64": (18, 68, "fd"),
    "pwritev": (296, 70, "fd"),
    "fsync": (74, 82, "fd"),
    "fdatasync": (75, 83, "fd"),
    "ftruncate": (77, 46, "fd"),
    "fallocate": (285, 47, "fd"),
    "open": (2, None, "path"),
    "openat": (257, 56, "at"),
    "rename": (82, None, "path"),
    "renameat": (264, 38, "at"),
    "renameat2": (316, 276, "at"),
    "unlink": (87, None, "path"),
    "unlinkat": (263, 35, "at"),
    "rmdir": (84, None, "path"),
    "mkdir": (83, None, "path"),
    "mkdirat": (258, 34, "at"),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
COLUMN, AUDIT_ARCH, NR_SECCOMP = ARCHITECTURES[platform.machine()]
NAMES = {row[COLUMN]: name for name, row in CALLS.items() if row[COLUMN] is not None}

# SOURCE: linux/seccomp.h, linux/filter.h, linux/prctl.h.
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SET_MODE_FILTER, NEW_LISTENER = 1, 8
RET_USER_NOTIF, RET_ALLOW = 0x7FC00000, 0x7FFF0000
NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101
CONTINUE = 1
O_ACCMODE, O_CREAT = os.O_ACCMODE, os.O_CREAT
NEEDS_ROOM = ("ENOSPC", "EDQUOT")

libc = ctypes.CDLL(None, use_errno=True)


def bpf(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)


def install_filter():
    """Returns the descriptor on which the kernel asks about this process's calls."""
    numbers = sorted(NAMES)
    program = [bpf(0x20, 0, 0, 4), bpf(0x15, 0, len(numbers) + 1, AUDIT_ARCH), bpf(0x20, 0, 0, 0)]
    for index, number in enumerate(numbers):
        program.append(bpf(0x15, len(numbers) - index, 0, number))
    program += [bpf(0x06, 0, 0, RET_ALLOW), bpf(0x06, 0, 0, RET_USER_NOTIF)]
    code = ctypes.create_string_buffer(b"".join(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = libc.syscall(NR_SECCOMP, SET_MODE_FILTER, NEW_LISTENER, header)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp refuses a listener")
    return listener


class Call:
    """A call that waits for its answer: which file it is about, and its arguments."""

    def __init__(self, notification):
        self.id, self.tid = struct.unpack_from("QI", notification)
        number = struct.unpack_from("i", notification, 16)[0]
        self.arguments = struct.unpack_from("6Q", notification, 32)
        self.name = NAMES[number]
        self.kind = CALLS[self.name][2]

    def memory(self, address, length):
        with open(f"/proc/{self.tid}/mem", "rb", 0) as memory:
            memory.seek(address)
            return memory.read(length)

    def text(self, address):
        # Up to the end of its page first: the next one may not be mapped.
        chunk = self.memory(address, 4096 - address % 4096)
        if b"\0" not in chunk:
            chunk += self.memory(address + len(chunk), 4096)
        return os.path.join(os.readlink(f"/proc/{self.tid}/cwd"), os.fsdecode(chunk.split(b"\0")[0]))

    def path(self):
        if self.kind == "fd":
            return os.readlink(f"/proc/{self.tid}/fd/{self.arguments[0]}")
        return self.text(self.arguments[0 if self.kind == "path" else 1])

    def open_flags(self):
        return self.arguments[1 if self.name == "open" else 2]

    def target(self):
        return self.text(self.arguments[1 if self.kind == "path" else 3])

    def written(self):
        if self.name in ("write", "pwrite64"):
            return self.memory(self.arguments[1], self.arguments[2])
        vector = self.memory(self.arguments[1], 16 * self.arguments[2])
        pairs = struct.iter_unpack("QQ", vector)
        return b"".join(self.memory(address, length) for address, length in pairs)

    def offset(self):
        if self.name.startswith("p"):
            return self.arguments[3]
        with open(f"/proc/{self.tid}/fdinfo/{self.arguments[0]}") as info:
            fields = dict(line.split(":", 1) for line in info)
        if int(fields["flags"], 8) & os.O_APPEND:
            return os.stat(f"/proc/{self.tid}/fd/{self.arguments[0]}").st_size
        return int(fields["pos"])


def can_fail(call, path, error):
    """An open for reading does not fail for lack of room."""
    if not call.name.startswith("open"):
        return not (error in NEEDS_ROOM and call.name.startswith(("unlink", "rmdir")))
    flags = call.open_flags()
    if error in NEEDS_ROOM:
        return bool(flags & O_CREAT) and not os.path.exists(path)
    return error != "EROFS" or bool(flags & O_ACCMODE or flags & O_CREAT)


class Recorder:
    def __init__(self, file):
        self.lines = open(file, "w")
        self.data = open(file + ".data", "wb")

    def note(self, **fields):
        self.lines.write(json.dumps({"at": time.monotonic_ns(), **fields}) + "\n")
        self.lines.flush()

    def change(self, call, path):
        """Notes the call. Returns the result for a call that was done here, else None."""
        if "write" in call.name:
            written = call.written()
            start = self.data.tell()
            self.data.write(written)
            self.data.flush()
            self.note(call="write", path=path, offset=call.offset(), start=start, length=len(written))
        elif call.name in ("fsync", "fdatasync"):
            descriptor = os.open(f"/proc/{call.tid}/fd/{call.arguments[0]}", os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            self.note(call="sync", path=path)
            return 0
        elif call.name == "ftruncate":
            self.note(call="truncate", path=path, length=call.arguments[1])
        elif call.name.startswith("open"):
            flags = call.open_flags()
            if flags & O_CREAT and not os.path.exists(path):
                self.note(call="create", path=path)
            elif flags & os.O_TRUNC:
                self.note(call="truncate", path=path, length=0)
        elif call.name.startswith("rename"):
            self.note(call="rename", path=path, to=call.target())
        elif call.name.startswith(("unlink", "rmdir")):
            self.note(call="remove", path=path)
        elif call.name.startswith("mkdir"):
            self.note(call="mkdir", path=path)
        return None


class Supervisor:
    def __init__(self, spec):
        self.spec = spec
        self.under = os.path.realpath(spec["under"])
        self.armed = spec["armed"]
        self.seen = 0
        self.counts, self.failed = {}, []
        self.recorder = Recorder(spec["record"]) if spec["record"] else None

    def matches(self, path):
        return path == self.under or path.startswith(self.under + "/")

    def answer(self, call):
        """The value and the error of the call, or None to let the kernel do it."""
        try:
            path = call.path()
        except OSError:
            return None
        if not self.matches(path):
            return None
        if self.recorder is not None:
            done = self.recorder.change(call, path)
            return None if done is None else (done, 0)
        spec = self.spec
        if not self.armed or (spec["calls"] and call.name not in spec["calls"]):
            return None
        if spec["calls"] and not can_fail(call, path, spec["error"]):
            return None
        self.counts[call.name] = self.counts.get(call.name, 0) + 1
        self.seen += 1
        if not spec["calls"] or self.seen <= spec["after"]:
            return None
        if spec["times"] is not None and self.seen > spec["after"] + spec["times"]:
            return None
        self.failed.append([call.name, os.path.relpath(path, self.under)])
        return (0, -getattr(errno, spec["error"]))

    def serve(self, listener):
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while True:
            events = poll.poll()
            if not events or not events[0][1] & select.POLLIN:
                return
            notification = bytearray(80)
            try:
                fcntl.ioctl(listener, NOTIF_RECV, notification)
                call = Call(notification)
                result = self.answer(call)
                value, error = (0, 0) if result is None else result
                flags = CONTINUE if result is None else 0
                fcntl.ioctl(listener, NOTIF_SEND, struct.pack("QqiI", call.id, value, error, flags))
            except OSError as problem:
                # The caller was killed meanwhile, or a signal came.
                if problem.errno not in (errno.ENOENT, errno.EINTR):
                    raise

    def report(self):
        with open(self.spec["report"], "w") as file:
            json.dump({"counts": self.counts, "failed": self.failed[:100], "failures": len(self.failed)}, file)


def main(spec, command):
    supervisor = Supervisor(json.loads(spec))
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        listener = install_filter()
        socket.send_fds(theirs, [b"x"], [listener])
        os.close(listener)
        os.execv(command[0], command)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)

    def arm(is_armed):
        supervisor.armed, supervisor.seen = is_armed, 0

    signal.signal(signal.SIGUSR1, lambda *_: arm(True))
    signal.signal(signal.SIGUSR2, lambda *_: arm(False))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(child, number))
    supervisor.serve(listener)
    _, status = os.waitpid(child, 0)
    supervisor.report()
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
