# SPDX-License-Identifier: Apache-2.0
"""Shared by all benchmarks: directories, sandboxes, runs in turns, and the list of results."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

NOBODY = 65534
PROGRAMS = ('cay', 'cay-warden', 'cay-init', 'cay-gateway', 'bench/bench-spawn', 'bench/bench-exec-client',
            'bench/bench-claim-client', 'bench/bench-many', 'bench/bench-net', 'bench/bench-walls', 'bench/bench-whose')


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))]


def has_no_journal(path):
    """True if path is on an ext4 file system without a journal."""
    at = os.stat(path).st_dev
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        for line in f:
            left, right = line.split(' - ', 1)
            if left.split()[2] == f'{os.major(at)}:{os.minor(at)}' and right.split()[0] == 'ext4':
                device = os.path.basename(right.split()[1])
                running = os.listdir('/proc/fs/jbd2') if os.path.isdir('/proc/fs/jbd2') else []
                return not any(name.startswith(device + '-') for name in running)
    return False


class Lab:
    """Temporary places for one run of all benchmarks, and what they found."""

    def __init__(self, build, quick):
        self.quick = quick
        self.folder = tempfile.mkdtemp(prefix='cay-bench-')
        self.memory = tempfile.mkdtemp(prefix='cay-bench-', dir='/dev/shm')
        self.is_root = os.geteuid() == 0
        self.rows, self.skipped, self.raw, self.notes, self.states = [], [], {}, [], []
        for place in (self.folder, self.memory):
            os.chmod(place, 0o755)
        # An unprivileged user need not be able to look into the build directory.
        for name in PROGRAMS:
            shutil.copy2(os.path.join(build, name), self.folder)
        self.cay = os.path.join(self.folder, 'cay')
        self.spawner = os.path.join(self.folder, 'bench-spawn')
        self.many = os.path.join(self.folder, 'bench-many')
        self.walls = os.path.join(self.folder, 'bench-walls')

    def done(self):
        for state in self.states:
            pools = subprocess.run([self.cay, 'pool', 'ls', '-q'], env=self.env(state), capture_output=True, text=True,
                                   check=False).stdout.split()
            for words in [*(['pool', 'set', name, '0'] for name in pools), ['kill', '--all']]:
                subprocess.run([self.cay, *words], env=self.env(state), capture_output=True, check=False)
        for place in (self.folder, self.memory):
            shutil.rmtree(place, ignore_errors=True)

    def pick(self, full, quick):
        return quick if self.quick else full

    # Results

    def promise(self, what, measured, limit, unit='x', detail=''):
        """A row of the table that is met or not."""
        self.rows.append({'what': what, 'measured': measured, 'limit': limit, 'unit': unit,
                          'met': measured <= limit, 'detail': detail})

    def fact(self, what, measured, unit='', detail=''):
        """A row without a promise."""
        self.rows.append({'what': what, 'measured': measured, 'limit': None, 'unit': unit,
                          'met': None, 'detail': detail})

    def skip(self, name, reason):
        self.skipped.append({'name': name, 'reason': reason})

    # Sandboxes

    def state(self, name, in_memory=False, owner=None):
        path = os.path.join(self.memory if in_memory else self.folder, name)
        os.mkdir(path, 0o700)
        if owner is not None:
            os.chown(path, owner, owner)
        self.states.append(path)
        return path

    def env(self, state, **more):
        return {**os.environ, 'CAY_STATE': state, **more}

    def cay_says(self, state, *args, **more):
        done = subprocess.run([self.cay, *args], env=self.env(state, **more), capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f'cay {" ".join(args)}: {done.stderr.strip()}')
        return done.stdout

    def timed(self, state, *args):
        """What it says and how long it takes in ms, from its start to its end, without the work of subprocess."""
        out, inlet = os.pipe()
        with open(os.devnull, 'rb') as null:
            actions = [(os.POSIX_SPAWN_DUP2, null.fileno(), 0), (os.POSIX_SPAWN_DUP2, inlet, 1)]
            start = time.perf_counter()
            pid = os.posix_spawn(self.cay, [self.cay, *args], self.env(state), file_actions=actions)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            took = (time.perf_counter() - start) * 1e3
        os.close(inlet)
        with os.fdopen(out) as f:
            said = f.read().strip()
        if code != 0:
            raise RuntimeError(f'cay {" ".join(args)}: {code}')
        return said, took

    def create(self, state, *options):
        return self.cay_says(state, 'create', '--quiet', *options).strip()

    # Measuring

    def turns(self, rounds, seconds, commands, as_nobody=False):
        """Run all in turns, as many rounds as fit into the seconds.

        commands: [(name, every, {env}, argv)]; returns {name: {round: (ns, cpu_us)}}."""
        words = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups'] if as_nobody else []
        words += [self.spawner, str(rounds), str(seconds)]
        for i, (_, every, env, argv) in enumerate(commands):
            words += [':::'] * (i > 0) + [f'@{every}'] + [f'{k}={v}' for k, v in env.items()] + argv
        said = subprocess.run(words, capture_output=True, text=True, check=False, cwd='/')
        if said.returncode != 0:
            raise RuntimeError(said.stderr.strip())
        times = {name: {} for name, *_ in commands}
        for line in said.stdout.splitlines():
            turn, which, ns, cpu, status = map(int, line.split())
            if status != 0:
                why = said.stderr.strip()[-300:]
                raise RuntimeError(f'{commands[which][0]}: exit code {status} in round {turn}: {why}')
            times[commands[which][0]][turn] = (ns, cpu)
        done = max(len(runs) for runs in times.values())
        if done < rounds:
            self.notes.append(f'{commands[0][0]} and others: only {done} of {rounds} rounds, the machine is busy')
        return times

    def trial(self, argv, env=None, as_nobody=False):
        """None where the command works, else the reason why not."""
        words = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups'] if as_nobody else []
        words += [arg.replace('%N', f'{os.getpid()}-0') for arg in argv]
        try:
            done = subprocess.run(words, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False, cwd='/', timeout=60)
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)
        if done.returncode == 0:
            return None
        return (done.stderr.strip().split('\n')[-1] or f'exit code {done.returncode}')[:160]

    def write(self, path):
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'rows': self.rows, 'skipped': self.skipped, 'notes': self.notes, 'quick': self.quick,
                       'raw': self.raw}, f, indent=1)


def median_ms(runs):
    return statistics.median(ns for ns, _ in runs.values()) / 1e6


def paired(runs, base):
    """Median over the rounds of the ratio within a round: what drifts meets both alike."""
    return statistics.median(runs[n][0] / base[n][0] for n in runs if n in base)


def summary(times):
    return {name: {'runs': len(runs), 'median_ms': round(median_ms(runs), 3),
                   'p10_ms': round(quantile([ns for ns, _ in runs.values()], 0.1) / 1e6, 3),
                   'p90_ms': round(quantile([ns for ns, _ in runs.values()], 0.9) / 1e6, 3),
                   'cpu_ms': round(statistics.median(cpu for _, cpu in runs.values()) / 1e3, 3)}
            for name, runs in times.items() if runs}
