# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what it has, and that dpkg installs, upgrades and removes it."""

import os
import shutil
import subprocess

import pytest

import caylib

BUILD = os.path.dirname(caylib.CAY)
PACKAGING = os.path.join(caylib.ROOT, 'packaging')

pytestmark = pytest.mark.skipif(
    not all(shutil.which(p) for p in ('dpkg-deb', 'gzip')) or not os.path.exists(f'{BUILD}/man/cay.1') or not os.path.isdir(PACKAGING),
    reason='dpkg-deb, the manual or packaging/ is missing')


def make_deb(out, version):
    done = subprocess.run([os.path.join(caylib.ROOT, 'scripts/deb'), BUILD, out], env={**os.environ, 'CAY_DEB_VERSION': version},
                          check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_package_has_programs_units_and_safe_modes(tmp_path):
    deb = make_deb(tmp_path, '1.2.3')
    assert os.path.basename(deb).startswith('cay_1.2.3_')
    listed = subprocess.run(['dpkg-deb', '-c', deb], check=True, capture_output=True, text=True).stdout.splitlines()
    files = {line.split()[5].removeprefix('.'): line.split()[:2] for line in listed}
    for name in ('/usr/bin/cay', '/usr/libexec/cay/cay-warden', '/usr/libexec/cay/cay-init', '/usr/libexec/cay/cay-gateway'):
        assert files[name] == ['-rwxr-xr-x', 'root/root']
    for name in ('/lib/systemd/system/cay.service', '/lib/systemd/system/cay-sandboxes.service', '/etc/cay/serve.conf',
                 '/etc/logrotate.d/cay', '/usr/share/man/man1/cay.1.gz', '/usr/share/bash-completion/completions/cay'):
        assert files[name] == ['-rw-r--r--', 'root/root']
    assert not [n for n, (mode, _) in files.items() if 's' in mode or mode[8] == 'w']


def test_dpkg_installs_upgrades_and_removes_it(cay, mode, tmp_path):
    """In a sandbox: a system that may be broken."""
    if mode != 'rootful':
        pytest.skip('dpkg needs root')
    box = cay.create()
    try:
        for version in ('1', '2'):
            with open(make_deb(tmp_path, version), 'rb') as f:
                cay('exec', '--user', 'root', box, '--', 'sh', '-c', f'cat >/tmp/{version}.deb', input=f.read(), check=True)
        script = '''set -e
            dpkg --force-unsafe-io -i /tmp/1.deb
            cay version
            echo "# mine" >>/etc/cay/serve.conf
            CAY_STATE=/tmp/state cay serve --check --config /etc/cay/serve.conf
            mkdir -p /var/lib/cay && touch /var/lib/cay/work
            dpkg --force-unsafe-io --force-confold -i /tmp/2.deb
            grep -q mine /etc/cay/serve.conf
            dpkg -r cay
            test ! -e /usr/bin/cay && test -e /etc/cay/serve.conf
            dpkg --purge cay
            test ! -e /etc/cay/serve.conf && test -e /var/lib/cay/work'''
        done = cay('exec', '--user', 'root', box, '--', 'sh', '-c', script)
        assert done.code == 0, done.out + done.err
    finally:
        cay('kill', box, check=True)


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='systemd-analyze is missing')
def test_systemd_accepts_the_units(tmp_path):
    for name in ('cay.service', 'cay-sandboxes.service'):
        with open(f'{PACKAGING}/{name}', encoding='ascii') as f:
            text = f.read().replace('/usr/bin/cay', caylib.CAY)
        assert 'NoNewPrivileges=' not in text and 'SystemCallFilter=' not in text
        (tmp_path / name).write_text(text)
    done = subprocess.run(['systemd-analyze', 'verify', '--man=no', *(str(p) for p in tmp_path.iterdir())],
                          env={**os.environ, 'SYSTEMD_UNIT_PATH': f'{tmp_path}:'}, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and 'cay' not in done.stderr, done.stderr
