# SPDX-License-Identifier: Apache-2.0
"""Package managers through the gateway, against the registries that this machine is set up for.

Their names are read from the clients' own configuration when the test runs.
"""

import glob
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

import caylib

MORE = {'jest': '^29', 'eslint': '^8'} if caylib.DEEP else {}  # some 60 packages, or 300
OWN_NETWORK = os.environ.get('CAY_TEST_OFFLINE') == '1'


def addresses(host):
    try:
        return sorted({x[4][0] for x in socket.getaddrinfo(host, 443)})
    except OSError:
        return []


def policy_for(folder, hosts):
    """A rule set that names only these hosts, and their addresses, which need not be global."""
    rules = []
    for i, host in enumerate(hosts):
        found = addresses(host)
        if not found:
            pytest.skip('a registry of this machine has no address here')
        rules.append({'id': f'registry-{i}', 'hosts': [host], 'addresses': found, 'ports': [80, 443]})
        rules.append({'id': f'registry-{i}-global', 'hosts': [host], 'ports': [80, 443]})
    path = os.path.join(folder, 'registry.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'rules': rules}, f)
    return path


def apt_hosts():
    """Of the first list that can be reached; others of them may be out of reach here."""
    text = ''
    for path in ['/etc/apt/sources.list', *glob.glob('/etc/apt/sources.list.d/*')]:
        text += caylib.read_text(path)
    hosts = []
    for host in re.findall(r'^\s*(?:URIs:|deb)[^\n]*?//([^/\s:]+)', text, re.M):
        if host not in hosts and addresses(host):
            hosts.append(host)
    return hosts


def npm_host():
    if not shutil.which('npm'):
        pytest.skip('npm is not installed')
    out = subprocess.run(['npm', 'config', 'get', 'registry'], capture_output=True, text=True, check=False).stdout
    match = re.search(r'//([^/\s:]+)', out)
    if not match:
        pytest.skip('npm has no registry')
    return match.group(1), out.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(not caylib.ROOTFUL, reason='apt needs root inside')
def test_apt_updates_and_installs(cay, tmp_path):
    hosts = apt_hosts()
    if not hosts:
        pytest.skip('no package list of this machine can be reached')
    script = '''
apt-get -o Acquire::Retries=0 update 2>&1 | tail -3
apt-get install -y --no-install-recommends --reinstall hello sudo >/tmp/log 2>&1 || { tail -5 /tmp/log; exit 1; }
hello
echo 'user ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/user
su user -c 'sudo -n useradd -m bob && sudo -n -u bob id -un && sudo -n id -u'
'''
    r = cay('run', '--user', 'root', '--net', policy_for(str(tmp_path), hosts), '--', 'sh', '-c', script, timeout=200)
    assert r.code == 0 and 'Hello, world!' in r.out, r
    assert r.out.endswith('\nbob\n0\n'), r  # setuid programs that a package brought work as well


@pytest.mark.slow
def test_npm_installs_a_project_of_many_packages(cay, tmp_path):
    host, registry = npm_host()
    project = tmp_path / 'project'
    project.mkdir()
    (project / 'package.json').write_text(json.dumps({
        'name': 'x', 'version': '1.0.0', 'dependencies': {'express': '^4'} | MORE}))
    os.chmod(project, 0o755)
    with cay.popen('run', '--dir', str(project), '--net', policy_for(str(tmp_path), [host]), '-e', f'npm_config_registry={registry}', '--',
                   'sh', '-c', 'cd "$(dirname "$(find / -name package.json -path "*project*" -maxdepth 6 2>/dev/null | head -1)")" && '
                   'HOME=/tmp npm install --no-audit --no-fund --loglevel=error && ls node_modules/.package-lock.json && '
                   'node -e "console.log(Object.keys(require(\'./node_modules/.package-lock.json\').packages).length)"') as p:
        r = p.finish(timeout=240)
    assert r.code == 0, r
    assert int(r.out.split()[-1]) >= (290 if MORE else 50), r
