# SPDX-License-Identifier: Apache-2.0
"""Programs find inside what they find on a developer's own machine."""

import os
import subprocess

import pytest

import caylib
import proto
import wardenlib
from netlib import netbox, net, world  # noqa: F401  fixtures

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has no root inside')


def python(cay, script, *args, **options):
    return cay('run', *args, '--', 'python3', '-c', script, **options)


# --- sockets ---

@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_low_ports_can_be_bound(cay, profile):
    script = 'import socket\nfor port in (1, 80, 443): socket.create_server(("127.0.0.1", port))\nprint("ok")'
    assert python(cay, script, '--profile', profile, check=True).out == 'ok\n'


@rootful
def test_root_binds_low_ports(cay):
    assert python(cay, 'import socket; socket.create_server(("", 22)); print("ok")', '--user', 'root', check=True).out == 'ok\n'


@pytest.mark.parametrize('family, protocol, host, kind', [('AF_INET', 'IPPROTO_ICMP', '127.0.0.1', 8), ('AF_INET6', 'IPPROTO_ICMPV6', '::1', 128)])
def test_an_echo_on_loopback_is_answered(cay, family, protocol, host, kind):
    script = f'''
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM, socket.{protocol})
s.settimeout(5)
s.sendto(bytes([{kind}, 0, 0, 0, 0, 0, 0, 1]) + b"hello", ("{host}", 0))
print(s.recv(100)[8:])
'''
    assert python(cay, script, check=True).out == "b'hello'\n"


def test_an_echo_goes_nowhere_else(net):  # noqa: F811
    script = 'import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\n' \
             's.settimeout(2)\ns.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ("192.0.2.1", 0))\ns.recv(100)'
    r = net('run', '--net', 'open', '--', 'python3', '-c', script)
    assert r.code == 1 and 'PermissionError' in r.err, r


MULTICAST = '''
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 5007))
listener.settimeout(5)
here = socket.inet_aton("127.0.0.1")
listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.1.1.1") + here)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
sender.sendto(b"hello", ("224.1.1.1", 5007))
print(listener.recv(100))
'''


def test_multicast_works_on_loopback_without_network(cay):
    assert python(cay, MULTICAST, check=True).out == "b'hello'\n"


def test_multicast_works_on_loopback_with_network(net):  # noqa: F811
    assert net('run', '--net', 'coding', '--', 'python3', '-c', MULTICAST, check=True).out == "b'hello'\n"


def test_ss_lists_what_listens(cay):
    script = 'python3 -c "import socket, subprocess; s = socket.create_server((\'\', 8123)); subprocess.run([\'ss\', \'-ltn\'])"'
    r = cay('run', '--', 'sh', '-c', script, check=True)
    assert ':8123' in r.out, r


# --- devices ---

def test_message_queues_are_files(cay):
    script = '''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.mq_open(b"/hello", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
print(os.listdir("/dev/mqueue"))
'''
    assert python(cay, script, check=True).out == "['hello']\n"


# --- profiles ---

def test_a_program_with_the_leak_sanitizer_runs_in_locked(cay, tmp_path):
    program = str(tmp_path / 'asan')
    made = subprocess.run(['gcc', '-xc', '-', '-fsanitize=address', '-o', program], input=b'int main(void) { return 7; }', check=False)
    if made.returncode:
        pytest.skip('no compiler with AddressSanitizer')
    os.chmod(tmp_path, 0o755)
    for profile in ('dev', 'locked'):
        r = cay('run', '--profile', profile, '--ro', f'{program}:/asan', '--', '/asan')
        assert r.code == 7, (profile, r)


# --- files ---

def test_what_is_made_above_a_dir_belongs_to_the_user(cay, tmp_path):
    work = tmp_path / 'made' / 'above' / 'repo'
    work.mkdir(parents=True)
    for path in (tmp_path, *work.relative_to(tmp_path).parents):
        os.chmod(tmp_path / path, 0o755)
    script = 'git init -q . && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m one && git worktree add -q ../other && ls ..'
    r = cay('run', '--dir', str(work), '--', 'sh', '-c', script, check=True)
    assert r.out.split() == ['other', 'repo']
    assert not (work.parent / 'other').exists()


def test_the_home_has_what_a_home_has(cay):
    skel = sorted(n for n in os.listdir('/etc/skel') if os.path.isfile(f'/etc/skel/{n}'))
    r = cay('run', '--', 'sh', '-c', 'cd; ls -A; for f in .[a-z]*; do test -O $f || echo $f; done', check=True)
    assert set(skel) | {'.local', '.npmrc'} == set(r.out.split()), r


def test_programs_of_the_user_are_found(cay):
    script = 'printf "#!/bin/sh\\necho mine\\n" > ~/.local/bin/ls && chmod +x ~/.local/bin/ls && exec ls'
    assert cay('run', '--', 'sh', '-c', script, check=True).out == 'mine\n'


@rootful
def test_root_does_not_run_programs_from_a_home(cay):
    assert '.local' not in cay('run', '--user', 'root', '--', 'printenv', 'PATH', check=True).out


def test_npm_installs_globally_into_the_home(cay):
    if cay('run', '--', 'sh', '-c', 'command -v npm').code:
        pytest.skip('needs npm')
    script = 'mkdir /tmp/p && cd /tmp/p && echo "{\\"name\\":\\"p\\",\\"version\\":\\"1.0.0\\",\\"bin\\":\\"p.js\\"}" > package.json && ' \
             'printf "#!/usr/bin/env node\\nconsole.log(7)\\n" > p.js && npm install -g --offline --no-audit . >/dev/null && p'
    r = cay('run', '--', 'sh', '-c', script, timeout=60)
    assert r.out == '7\n', r


def test_toolchains_of_the_caller_are_shown_read_only(cay, tmp_path):
    for name, text in (('.cargo/bin/cargo', 'cargo'), ('.cargo/credentials.toml', 'secret'), ('.rustup/settings.toml', ''),
                       ('.pyenv/versions/3.9.1/bin/py', 'py-3.9.1'), ('.pyenv/versions/3.12.0/bin/py', 'py-3.12.0'),
                       ('.nvm/versions/node/v20.1.0/bin/nd', 'nd-20'), ('go/bin/gotool', 'gotool')):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {text}\n')
        path.chmod(0o755)
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o755)
    script = 'cargo; py; nd; gotool; touch ~/.rustup/x 2>/dev/null || echo ro; touch ~/.cargo/registry && echo rw; ls -A ~/.cargo'
    r = cay('run', '--toolchains', '--', 'sh', '-c', script, env={'HOME': str(tmp_path)}, check=True)
    assert r.out.split() == ['cargo', 'py-3.12.0', 'nd-20', 'gotool', 'ro', 'rw', 'bin', 'registry'], r
    r = cay('run', '--toolchains', '--', 'true', env={'HOME': '/nowhere'})
    assert r.code == 125 and 'has none' in r.err, r


def test_directories_of_packages_exist_and_are_empty(cay):
    lists = '/var/lib/dpkg/info'
    if not os.path.isdir(lists):
        pytest.skip('no dpkg here')
    wanted = set()
    for name in os.listdir(lists):
        if name.endswith('.list'):
            with open(f'{lists}/{name}', encoding='utf-8') as f:
                wanted |= {line.strip() for line in f if line.startswith('/var/lib/')}
    wanted = {p for p in wanted if os.path.isdir(p) and os.path.realpath(p) == p and '/.' not in p and '/dpkg' not in p}
    assert wanted
    script = f'''
import os
for path in {sorted(wanted)!r}:
    try:
        files = [name for name in os.listdir(path) if not os.path.isdir(os.path.join(path, name))]
    except PermissionError:
        continue
    assert not files, (path, files)
'''
    python(cay, script, check=True)


# --- limits ---

FACTS = '''
import os, subprocess
def out(*argv): return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
memory = next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemTotal:"))
cpus = next(line.split()[1] for line in out("lscpu").splitlines() if line.startswith("CPU(s):"))
print(int(memory) // 1024, out("free", "-m").split("Mem:")[1].split()[0], out("nproc").strip(), cpus, os.cpu_count(),
      len(os.sched_getaffinity(0)), open("/proc/cpuinfo").read().count("processor\t:"), os.environ.get("GOMEMLIMIT"))
'''


def limits(*wanted):
    """Rootless there may be no control groups; what programs see must be the same."""
    return wanted if caylib.ROOTFUL else ('--best-effort', *wanted)


def test_programs_see_the_limits(cay):
    r = python(cay, FACTS, *limits('--memory', '512M', '--cpus', '1'), check=True)
    assert r.out.split() == ['512', '512', '1', '1', '1', '1', '1', str((512 << 20) // 10 * 9)], r


def test_without_limits_programs_see_the_machine(cay):
    here = subprocess.run(['python3', '-c', FACTS], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert python(cay, FACTS, check=True).out == here


def test_limits_are_still_seen_after_a_rollback(cay, no_leftovers):
    ref = cay.create(*limits('--memory', '512M', '--cpus', '1'))
    try:
        snapshot = cay('snapshot', ref, check=True).out.split()[0]
        cay('rollback', ref, snapshot, check=True)
        assert cay('exec', ref, 'python3', '-c', FACTS, check=True).out.startswith('512 512 1 1 1 1 1 ')
    finally:
        cay('kill', ref)


def test_node_and_the_jvm_size_themselves_by_the_limits(cay):
    r = cay('run', *limits('--memory', '1G', '--cpus', '1'), '--', 'sh', '-c', 'command -v node; command -v java')
    if len(r.out.split()) != 2:
        pytest.skip('needs node and java')
    script = 'node -p "Math.round(require(\'v8\').getHeapStatistics().heap_size_limit / 1048576) + \' \' + require(\'os\').cpus().length"\n' \
             'java -XX:+PrintFlagsFinal -version 2>/dev/null | sed -n "s/.* MaxHeapSize *= *\\([0-9]*\\).*/\\1/p"\n' \
             'java -XshowSettings:system -version 2>&1 | grep -c -e "Effective CPU Count: 1" -e "Memory Limit: 1.00G"'
    r = cay('run', *limits('--memory', '1G', '--cpus', '1'), '--', 'sh', '-c', script, check=True)
    heap, cpus, jvm, known = (int(x) for x in r.out.split())
    assert heap <= 1024 and cpus == 1 and jvm == 256 << 20 and known == 2, r


@rootful
def test_nothing_that_tells_the_limits_can_be_changed_or_uncovered(cay):
    script = '''
import os
tried = 0
for top in ("/sys", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/cgroups"):
    for path in [top] + [os.path.join(d, n) for d, _, names in os.walk(top) for n in names]:
        if os.path.isdir(path): continue
        try:
            os.close(os.open(path, os.O_WRONLY))
            print("open", path)
        except OSError as e:
            assert e.errno in (30, 13), (path, e)
            tried += 1
print(tried > 20, os.system("umount /proc/meminfo 2>/dev/null || umount -l /sys/fs/cgroup/memory 2>/dev/null") != 0)
'''
    r = python(cay, script, '--user', 'root', '--memory', '512M', '--cpus', '1', check=True)
    assert r.out == 'True True\n', r


# --- speed ---

def test_reading_writes_no_times(cay):
    r = cay('run', '--', 'sh', '-c', 'grep " / / " /proc/self/mountinfo', check=True)
    assert 'noatime' in r.out.split()[5].split(','), r


# --- the network's words ---

def test_a_denial_is_told_while_the_call_runs(net, netbox):  # noqa: F811
    ref = netbox('--allow', 'web.test')
    script = 'import socket, sys\ntry: socket.create_connection(("evil.test", 443), 5)\nexcept OSError: pass\nsys.stdin.read()'
    with wardenlib.connect(net.cay, ref) as client:
        client.send(proto.C_EXEC, wardenlib.args('python3', '-c', script))
        denied = client.until(proto.C_DENIED)
        assert denied.text(proto.TAG_NAME) == 'evil.test' and denied.text(proto.TAG_RULE)
        client.send(proto.C_STDIN_EOF)  # it still ran
        assert client.until(proto.C_EXIT).number(proto.TAG_STATUS) == 0


def test_cay_says_a_denial_when_it_happens_and_only_once(net, netbox):  # noqa: F811
    ref = netbox('--allow', 'web.test')
    script = ('import socket, sys\nfor _ in range(2):\n  try: socket.create_connection(("evil.test", 443), 5)\n'
              '  except OSError: pass\nsys.stdin.read()')
    with net.popen('exec', ref, '--', 'python3', '-c', script, stdin=subprocess.PIPE) as p:
        said = p.stderr.readline()  # while the command waits for its input
        assert said.startswith(b'cay: refused: evil.test (') and p.poll() is None, said
        rest = p.communicate()
    assert (p.returncode, rest) == (0, (b'', b''))


def test_a_proxy_connection_that_closes_without_a_byte_is_no_denial(net, netbox):  # noqa: F811
    ref = netbox('--allow', 'web.test')
    script = 'import socket\nfor port in (3128, 1080): socket.create_connection(("198.18.0.1", port), 5).shutdown(1)'
    r = net('exec', ref, 'python3', '-c', script)
    assert r.code == 0 and 'refused' not in r.err, r
    caylib.wait_until(lambda: len(net.events(ref, 'net.fail')) == 2, what='two ends')
    assert {e['reason'] for e in net.events(ref, 'net.fail')} == {'closed without data'}
    assert net.events(ref, 'net.deny') == []
