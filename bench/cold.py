# SPDX-License-Identifier: Apache-2.0
"""Cold start: `cay run -- true` in turns with other installed sandboxes."""

import json
import os
import shutil
import subprocess

import lab as lab_module

BWRAP = ['bwrap', '--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts',
         '--unshare-cgroup', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', 'true']


def skeleton(folder):
    """A root file system of links into /usr, which is bound there."""
    root = os.path.join(folder, 'rootfs')
    os.makedirs(os.path.join(root, 'usr'))
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        os.symlink(f'usr/{name}', os.path.join(root, name))
    return root


def bundle(runtime, folder):
    """An OCI bundle that runs `true` on the host's /usr, read-only."""
    skeleton(folder)
    subprocess.run([runtime, 'spec'], cwd=folder, check=True, capture_output=True)
    path = os.path.join(folder, 'config.json')
    with open(path, encoding='utf-8') as f:
        config = json.load(f)
    config['process'].update(args=['true'], terminal=False)
    config['mounts'] = [m for m in config['mounts'] if m['type'] != 'cgroup']  # hybrid hosts lack the path
    config['mounts'].append({'destination': '/usr', 'type': 'bind', 'source': '/usr', 'options': ['rbind', 'ro']})
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(config, f)


def docker(folder):
    root = skeleton(folder)
    image = f'cay-bench-{os.getpid()}'
    tar = subprocess.run(['tar', '-C', root, '-c', '.'], capture_output=True, check=True).stdout
    made = subprocess.run(['docker', 'import', '-', image], input=tar, capture_output=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(made.stderr.decode('utf-8', 'replace').strip().split('\n')[0])
    return ['docker', 'run', '--rm', '--network', 'none', '-v', '/usr:/usr:ro', image, 'true']


def podman(folder):
    return ['podman', 'run', '--rm', '--network', 'none', '-v', '/usr:/usr:ro', '--rootfs', skeleton(folder), 'true']


def others(lab):
    """(name, every, env, argv) of the runtimes that are here and work; the rest is named."""
    found = []
    for name in ('runc', 'crun', 'runsc', 'podman', 'docker'):
        folder = os.path.join(lab.folder, name)
        if not shutil.which(name):
            lab.skip(name, 'not installed')
            continue
        try:
            if name in ('docker', 'podman'):
                argv = docker(folder) if name == 'docker' else podman(folder)
            else:
                bundle(name, folder)
                argv = [name, 'run', '--bundle', folder, 'cay-bench-%N']
            why = lab.trial(argv)
        except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as e:
            why = str(e)
        if why:
            lab.skip(name, why)
        else:
            found.append((name, 1 if name == 'crun' else 3, {}, argv))
    return found


def with_bwrap(lab, as_nobody):
    if not shutil.which('bwrap'):
        lab.skip('bwrap', 'not installed')
        return []
    why = lab.trial(BWRAP, as_nobody=as_nobody)
    if why:
        lab.skip('bwrap, rootless' if as_nobody else 'bwrap', why)
    return [] if why else [('bwrap', 1, {}, BWRAP)]


def measure(lab, who, as_nobody, more):
    owner = lab_module.NOBODY if as_nobody else None
    disk = lab.state(f'cold-{who}', owner=owner)
    memory = lab.state(f'cold-{who}', in_memory=True, owner=owner)
    run = [lab.cay, 'run', '--', 'true']
    for state in (disk, memory):
        why = lab.trial(run, {'CAY_STATE': state}, as_nobody)  # also makes the template's layer
        if why:
            raise RuntimeError(f'cay run, {who}: {why}')
    times = lab.turns(lab.pick(90, 15), lab.pick(70, 8), [
        ('fork+exec', 1, {}, ['true']),
        ('cay, state on disk', 1, {'CAY_STATE': disk}, run),
        *with_bwrap(lab, as_nobody),
        ('cay, state on tmpfs', 1, {'CAY_STATE': memory}, run),
        *more], as_nobody)
    lab.raw[f'cold {who}'] = lab_module.summary(times)
    return times


def compare(lab, times, who):
    for where in ('disk', 'tmpfs'):
        ours = times[f'cay, state on {where}']
        for name, limit in (('bwrap', 1.0), ('runc', 0.125), ('crun', None), ('runsc', None), ('podman', None),
                            ('docker', None)):
            if not times.get(name):
                continue
            ratio = lab_module.paired(ours, times[name])
            what = f'cold run / {name}, {who}, state on {where}'
            detail = f'{lab_module.median_ms(ours):.2f} / {lab_module.median_ms(times[name]):.2f} ms'
            if limit:
                lab.promise(what, ratio, limit, detail=detail)
            else:
                lab.fact(what, ratio, 'x', detail)


def bench(lab):
    if lab_module.has_no_journal(lab.folder):
        lab.notes.append(f'{lab.folder} is on ext4 without a journal: there the kernel searches recently deleted '
                         'inodes one by one when it makes a file, which punishes loops that create and delete; '
                         'see the rows with the state on tmpfs')
    who = 'rootful' if lab.is_root else 'rootless'
    compare(lab, measure(lab, who, False, others(lab) if lab.is_root else []), who)
    if lab.is_root:
        compare(lab, measure(lab, 'rootless', True, []), 'rootless')
