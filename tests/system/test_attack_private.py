# SPDX-License-Identifier: Apache-2.0
"""Private files of the host below the directories that the template `host` shows as they are."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import caylib
import pytest

TOP = pathlib.Path(f'/opt/cay-test-{os.getpid()}')


@pytest.fixture
def private():
    TOP.mkdir()
    TOP.chmod(0o755)
    (TOP / 'public').write_text('public\n')
    (TOP / 'public').chmod(0o644)
    (TOP / 'secret').write_text('canary\n')
    (TOP / 'secret').chmod(0o600)
    (TOP / 'closed').mkdir(0o700)
    (TOP / 'closed' / 'inside').write_text('canary\n')
    yield TOP
    shutil.rmtree(TOP)


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root inside would pass the permission bits')
def test_root_inside_does_not_see_what_is_closed_to_others(cay, private):
    cay('run', '--', 'true', check=True)
    shown = cay('run', '--user', 'root', '--', 'sh', '-c',
                      f'cat {private}/public; cat {private}/secret {private}/closed/*; ls {private}; '
                      f'echo own > {private}/secret; mkdir {private}/closed; cat {private}/secret; stat -c %a {private}')
    assert shown.out == 'public\npublic\nown\n755\n'
    assert (private / 'secret').read_text() == 'canary\n'


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root inside would pass the permission bits')
def test_a_directory_that_becomes_private_is_hidden_from_the_next_sandbox(cay, private):
    cay('run', '--', 'true', check=True)
    private.chmod(0o700)
    assert cay('run', '--user', 'root', '--', 'cat', private / 'public').out == ''


SECRETS = {'.env': 'KEY=canary\n', 'id_rsa': 'canary\n', 'tls.key': 'canary\n', '.netrc': 'canary\n', '.aws/credentials': 'canary\n',
           '.git/config': 'url = https://u:canary@h/x\n', 'app.service': 'Environment=API_TOKEN=canary\n', '.pgpass': 'canary\n',
           'www/.htpasswd': 'canary\n', 'blind/file': 'canary\n'}


@pytest.mark.skipif(not caylib.ROOTFUL, reason='a user cannot put files there; host_layer_test builds the layer as a user')
def test_credentials_that_everybody_may_read_are_hidden(cay, private):
    for name, text in SECRETS.items():
        (private / name).parent.mkdir(exist_ok=True)
        (private / name).write_text(text)
    (private / 'blind').chmod(0o711)
    (private / 'settings.yml').write_text('url: https://h/x\n')
    cay('run', '--', 'true', check=True)
    for user in ('root', '1000'):
        shown = cay('run', '--user', user, '--', 'sh', '-c', f'cd {private}; cat {" ".join(SECRETS)}; grep -r canary .; cat settings.yml')
        assert shown.out == 'url: https://h/x\n', shown


@pytest.mark.skipif(not caylib.ROOTFUL, reason='a user cannot put files there')
def test_the_doctor_names_what_is_shown_and_may_be_a_credential(cay, private):
    (private / 'deploy-token.txt').write_text('canary\n')
    (private / '.env').write_text('canary\n')
    found = next(c for c in cay.json('doctor')[0]['checks'] if c['name'] == 'credentials')
    assert found['state'] == 'note' and f'{private}/deploy-token.txt' in found['finding'] and '.env' not in found['finding'], found
    (private / 'deploy-token.txt').chmod(0o600)
    found = next(c for c in cay.json('doctor')[0]['checks'] if c['name'] == 'credentials')
    assert str(private) not in found['finding'], found


@pytest.mark.skipif(not caylib.ROOTFUL, reason='a user cannot put files there; host_layer_test builds the layer as a user')
def test_a_sandbox_of_a_user_does_not_see_them_either(private):
    (private / '.env').write_text('canary\n')
    home = pathlib.Path(tempfile.mkdtemp(prefix='cay-home-'))
    os.chown(home, 65534, 65534)
    as_user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'env', '-i', f'HOME={home}', 'PATH=/usr/bin:/bin',
               caylib.CAY, 'run', '--', 'sh', '-c', f'ls -A {private}; cat {private}/.env']
    done = subprocess.run(as_user, capture_output=True, text=True, check=False, cwd='/')
    # The warden removes the sandbox after `cay run` has ended.
    caylib.wait_until(lambda: not os.listdir(home / '.local/state/cay/sandboxes'), what='the end of the sandbox')
    shutil.rmtree(home)
    assert done.stdout == 'public\n' and 'No such file' in done.stderr, done


BELOW = """
set -e
mount -t tmpfs -o mode=755 none /opt
mkdir /opt/app /opt/app/data
echo canary > /opt/app/.env; echo public > /opt/app/public; echo canary > /opt/app/closed; chmod 600 /opt/app/closed
mount -t tmpfs -o mode=755 none /opt/app/data
echo canary > /opt/app/data/.env; echo public > /opt/app/data/public; echo canary > /opt/app/data/closed; chmod 600 /opt/app/data/closed
touch /opt/app/mounted; mount --bind /opt/app/public /opt/app/mounted
exec "$CAY" run --user root -- sh -c 'cat /opt/app/public /opt/app/data/public /opt/app/mounted; grep -r canary /opt; touch /opt/new; :'
"""


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root can mount there')
def test_a_file_system_mounted_below_does_not_undo_it(cay):
    done = subprocess.run(['unshare', '-m', 'sh', '-c', BELOW], env={**cay.env, 'CAY': caylib.CAY}, capture_output=True, text=True, check=False)
    assert done.stdout == 'public\n' * 3 and 'Read-only' in done.stderr, done


def test_the_hosts_boot_line_is_not_shown(cay):
    """It may carry keys and addresses of the host."""
    assert cay('run', '--', 'cat', '/proc/cmdline', check=True).stdout == b''
