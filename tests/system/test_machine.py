# SPDX-License-Identifier: Apache-2.0
"""Real programs do inside what they do outside: the list is in tests/machine/programs.py.

CAY_MACHINE=all also runs the part of the list that takes minutes or a network (make test-deep).
"""

import importlib.util
import os
import re
import shutil
import subprocess

import pytest

import caylib
import test_net_registries as registries

HERE = os.path.dirname(os.path.abspath(__file__))
CERTIFICATES = ('NODE_EXTRA_CA_CERTS', 'PIP_CERT', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'CARGO_HTTP_CAINFO')
ALL = os.environ.get('CAY_MACHINE') == 'all'


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = load('programs', os.path.join(HERE, '../machine/programs.py')).PROGRAMS


def policy_of(rule, folder):
    """The hosts of one rule of the preset for building software, and nothing else."""
    text = caylib.read_text(os.path.join(HERE, '../../policies/coding.yaml'))
    found = re.search(rf'^  - id: {rule}\n    hosts: \[(.*?)\]', text, re.M)
    hosts = [host for host in found.group(1).split(', ') if registries.addresses(host)] if found else []
    if not hosts:
        pytest.skip(f'no host of the rule {rule} has an address here')
    return registries.policy_for(folder, hosts)


def outside(program, work, home):
    os.mkdir(work)
    done = subprocess.run(['sh', '-ec', program.script], cwd=work, env={**os.environ, 'HOME': home, 'LANG': 'C.UTF-8'}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=900, check=False)
    shutil.rmtree(work)
    return done


def why_not(program):
    if program.deep and not ALL:
        return 'only with CAY_MACHINE=all'
    missing = [name for name in program.needs if not shutil.which(name)]
    return f'needs {", ".join(missing)}' if missing else None


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda p: p.name)
def test_a_program_does_inside_what_it_does_outside(cay, tmp_path, program):
    if why_not(program):
        pytest.skip(why_not(program))
    os.chmod(tmp_path, 0o755)
    work, home = tmp_path / 'work', tmp_path / 'home'
    home.mkdir()
    here = outside(program, work, str(home)) if program.outside else None
    if here and here.returncode:
        pytest.skip(f'does not work outside: {here.stderr[-300:]}')
    os.mkdir(work)
    os.chmod(work, 0o755)
    options = ['--net', policy_of(program.rule, str(tmp_path))] if program.rule else []
    # A host whose certificates come from its own authority tells clients of it by variables.
    options += [x for name in CERTIFICATES if program.rule and name in os.environ for x in ('--env', name)]
    r = cay('run', '--dir', str(work), *options, *program.options, '--', 'sh', '-ec', program.script, timeout=900)
    assert r.code == 0, r
    assert r.out == here.stdout if here else r.out, r
