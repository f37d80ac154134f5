# SPDX-License-Identifier: Apache-2.0
"""Files and directories, and signed URLs of them."""

import io
import os
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from client import fails, go
from e2b import (AuthenticationException, FileNotFoundException, FileType, InvalidArgumentException, NotFoundException,
                 SandboxException)

ROOT = os.environ.get('CAY_TEST_USER', 'root')


def _names(entries):
    return [(e.name, e.type, e.path) for e in entries]


async def a_file_is_written_and_read(api):
    info = await go(api.shared.files.write('dir/ž ö.txt', 'hällo\n'))
    assert (info.name, info.path, info.type) == ('ž ö.txt', '/home/user/dir/ž ö.txt', FileType.FILE)
    assert await go(api.shared.files.read('dir/ž ö.txt')) == 'hällo\n'


async def a_file_is_read_as_bytes(api):
    await go(api.shared.files.write('bytes', b'\x00\xff\x80'))
    assert bytes(await go(api.shared.files.read('bytes', format='bytes'))) == b'\x00\xff\x80'


async def a_file_is_read_as_a_stream(api):
    await go(api.shared.files.write('stream', 'x' * 200000))
    stream = await go(api.shared.files.read('stream', format='stream'))
    if api.is_async:
        parts = [part async for part in stream]
    else:
        parts = list(stream)
    assert b''.join(parts) == b'x' * 200000


async def a_large_file_is_whole(api):
    data = bytes(i * 7 % 256 for i in range(100003)) * 50
    await go(api.shared.files.write('big', data))
    assert bytes(await go(api.shared.files.read('big', format='bytes'))) == data


async def an_empty_file_stays_empty(api):
    await go(api.shared.files.write('/tmp/empty', ''))
    assert await go(api.shared.files.read('/tmp/empty')) == ''
    assert (await go(api.shared.files.get_info('/tmp/empty'))).size == 0


async def a_file_object_is_written(api):
    await go(api.shared.files.write('from-object', io.BytesIO(b'from an object')))
    assert await go(api.shared.files.read('from-object')) == 'from an object'


async def a_text_object_is_written(api):
    await go(api.shared.files.write('from-text', io.StringIO('žluť')))
    assert await go(api.shared.files.read('from-text')) == 'žluť'


async def a_file_is_sent_packed(api):
    text = ' '.join(map(str, range(50000)))
    await go(api.shared.files.write('packed', text, gzip=True))
    assert await go(api.shared.files.read('packed')) == text


async def a_file_is_read_packed(api):
    await go(api.shared.files.write('to-pack', 'z' * 100000))
    assert await go(api.shared.files.read('to-pack', gzip=True)) == 'z' * 100000


async def a_file_is_sent_as_the_body(api):
    await go(api.shared.files.write('octets', b'raw\x00', use_octet_stream=True))
    assert bytes(await go(api.shared.files.read('octets', format='bytes'))) == b'raw\x00'


async def a_file_is_replaced_whole(api):
    await go(api.shared.files.write('replaced', 'a long text'))
    await go(api.shared.files.write('replaced', 'short'))
    assert await go(api.shared.files.read('replaced')) == 'short'


async def replacing_keeps_the_mode(api):
    await go(api.shared.files.write('script', 'x'))
    await go(api.shared.commands.run('chmod 755 script'))
    await go(api.shared.files.write('script', 'y'))
    assert (await go(api.shared.files.get_info('script'))).mode == 0o755


async def several_files_are_written_at_once(api):
    many = await go(api.shared.files.write_files([{'path': 'm/a', 'data': 'A'}, {'path': '/tmp/b', 'data': b'B'}]))
    assert [f.path for f in many] == ['/home/user/m/a', '/tmp/b']
    assert await go(api.shared.files.read('m/a')) + await go(api.shared.files.read('/tmp/b')) == 'AB'


async def no_files_are_no_error(api):
    assert await go(api.shared.files.write_files([])) == []


async def many_files_are_written_at_once(api):
    many = await go(api.shared.files.write_files([{'path': f'many/{i}', 'data': str(i)} for i in range(50)]))
    assert len(many) == 50
    assert len(await go(api.shared.files.list('many'))) == 50


async def a_file_that_is_missing_is_named(api):
    await fails(lambda: api.shared.files.read('missing'), FileNotFoundException, says="'/home/user/missing' does not exist")


async def a_directory_cannot_be_read(api):
    await fails(lambda: api.shared.files.read('/tmp'), InvalidArgumentException, says="'/tmp' is a directory")


async def a_file_cannot_be_written_over_a_directory(api):
    await fails(lambda: api.shared.files.write('/tmp', 'x'), InvalidArgumentException, says='is a directory')


async def a_file_cannot_have_files_below_it(api):
    await go(api.shared.files.write('no-dir', ''))
    await fails(lambda: api.shared.files.write('no-dir/below', 'x'), SandboxException)


async def files_of_an_unknown_user_are_refused(api):
    await fails(lambda: api.shared.files.read('x', user='nobodyhere'), AuthenticationException, says="invalid username: 'nobodyhere'")
    await fails(lambda: api.shared.files.write('x', '', user='nobodyhere'), AuthenticationException)
    await fails(lambda: api.shared.files.list('/', user='nobodyhere'), AuthenticationException, says="invalid username: 'nobodyhere'")


async def files_are_of_their_user(api):
    await go(api.shared.files.write('/tmp/of-user', 'x'))
    info = await go(api.shared.files.get_info('/tmp/of-user'))
    assert (info.owner, info.group) == ('user', 'user')
    other = await go(api.shared.files.write('of-other', 'x', user=ROOT))
    assert other.path == ('/root/of-other' if ROOT == 'root' else '/home/user/of-other')


async def a_file_has_its_attributes(api):
    await go(api.shared.files.write('attributes', 'four'))
    info = await go(api.shared.files.get_info('attributes'))
    assert (info.name, info.type, info.path, info.size) == ('attributes', FileType.FILE, '/home/user/attributes', 4)
    assert (info.mode, info.permissions, info.symlink_target) == (0o644, '-rw-r--r--', None)
    assert info.modified_time.year > 2000


async def a_directory_has_its_attributes(api):
    await go(api.shared.files.make_dir('a-dir'))
    info = await go(api.shared.files.get_info('a-dir'))
    assert (info.type, info.mode, info.permissions) == (FileType.DIR, 0o755, 'drwxr-xr-x')


async def a_link_tells_its_target(api):
    await go(api.shared.commands.run('echo x > /tmp/target; ln -sf /tmp/target a-link'))
    info = await go(api.shared.files.get_info('a-link'))
    assert (info.type, info.symlink_target, info.permissions[0]) == (FileType.FILE, '/tmp/target', 'L')
    assert await go(api.shared.files.read('a-link')) == 'x\n'


async def what_is_missing_has_no_attributes(api):
    await fails(lambda: api.shared.files.get_info('nowhere'), FileNotFoundException, says='does not exist')


async def existence_is_told(api):
    await go(api.shared.files.write('there', ''))
    assert await go(api.shared.files.exists('there')) is True
    assert await go(api.shared.files.exists('not-there')) is False
    assert await go(api.shared.files.exists('/tmp')) is True


async def directories_are_made_once(api):
    assert await go(api.shared.files.make_dir('d1/d2/d3')) is True
    assert await go(api.shared.files.make_dir('d1/d2/d3')) is False


async def no_directory_takes_the_place_of_a_file(api):
    await go(api.shared.files.write('a-file', ''))
    await fails(lambda: api.shared.files.make_dir('a-file'), InvalidArgumentException)


async def a_directory_is_listed(api):
    await go(api.shared.files.make_dir('listed/sub'))
    await go(api.shared.files.write('listed/f', 'x'))
    await go(api.shared.files.write('listed/sub/g', 'x'))
    assert _names(await go(api.shared.files.list('listed'))) == [
        ('f', FileType.FILE, '/home/user/listed/f'), ('sub', FileType.DIR, '/home/user/listed/sub')]


async def a_directory_is_listed_deeper(api):
    for name in ('a/b/c', 'a/x', 'z'):
        await go(api.shared.files.write(f'deep/{name}', ''))
    names = [e.path.removeprefix('/home/user/deep/') for e in await go(api.shared.files.list('deep', depth=2))]
    assert names == ['a', 'a/b', 'a/x', 'z']
    names = [e.path.removeprefix('/home/user/deep/') for e in await go(api.shared.files.list('deep', depth=3))]
    assert names == ['a', 'a/b', 'a/b/c', 'a/x', 'z']


async def an_empty_directory_is_listed(api):
    await go(api.shared.files.make_dir('nothing-in-it'))
    assert await go(api.shared.files.list('nothing-in-it')) == []


async def what_is_missing_is_not_listed(api):
    await fails(lambda: api.shared.files.list('nowhere'), NotFoundException, says='does not exist')


async def a_file_is_not_listed(api):
    await go(api.shared.files.write('just-a-file', ''))
    await fails(lambda: api.shared.files.list('just-a-file'), InvalidArgumentException, says='not a directory')


async def a_depth_of_nothing_is_refused(api):
    await fails(lambda: api.shared.files.list('/tmp', depth=0), InvalidArgumentException)


async def a_file_is_renamed(api):
    await go(api.shared.files.write('old', 'kept'))
    moved = await go(api.shared.files.rename('old', 'new-dir/new'))
    assert (moved.name, moved.path) == ('new', '/home/user/new-dir/new')
    assert await go(api.shared.files.exists('old')) is False
    assert await go(api.shared.files.read('new-dir/new')) == 'kept'


async def a_directory_is_renamed(api):
    await go(api.shared.files.write('old-dir/f', 'kept'))
    await go(api.shared.files.rename('old-dir', 'other-dir'))
    assert await go(api.shared.files.read('other-dir/f')) == 'kept'


async def what_is_missing_is_not_renamed(api):
    await fails(lambda: api.shared.files.rename('nowhere', 'somewhere'), NotFoundException, says='does not exist')


async def files_and_directories_are_removed(api):
    await go(api.shared.files.write('gone/a/b', ''))
    await go(api.shared.files.remove('gone/a/b'))
    await go(api.shared.files.remove('gone'))
    assert await go(api.shared.files.exists('gone')) is False
    await go(api.shared.files.remove('gone'))


async def metadata_stays_with_a_file(api):
    info = await go(api.shared.files.write('described', 'x', metadata={'Author': 'me = us', 'kind': 'test'}))
    assert info.metadata == {'author': 'me = us', 'kind': 'test'}, info.metadata
    assert (await go(api.shared.files.get_info('described'))).metadata == {'author': 'me = us', 'kind': 'test'}
    await go(api.shared.files.write('described', 'y'))
    assert not (await go(api.shared.files.get_info('described'))).metadata


def _fetch(url, data=None, kind='application/octet-stream'):
    request = urllib.request.Request(url, data=data, method='POST' if data is not None else 'GET',
                                     headers={'Content-Type': kind} if data is not None else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def a_signed_url_opens_one_file(api):
    """It has neither the id of the sandbox nor a key."""
    await go(api.shared.files.write('signed file', 'signed'))
    url = api.shared.download_url('signed file')
    assert api.shared.sandbox_id not in urlsplit(url).path + urlsplit(url).query
    assert _fetch(url) == (200, 'signed')
    assert _fetch(url.replace('signed%20file', 'other').replace('signed+file', 'other'))[0] == 401


async def a_signed_url_takes_one_file(api):
    url = api.shared.upload_url('uploaded')
    assert _fetch(url, b'by url')[0] == 200
    assert await go(api.shared.files.read('uploaded')) == 'by url'
    assert _fetch(url)[0] == 401


async def a_signed_url_is_for_its_user(api):
    await go(api.shared.files.write('of-whom', 'x', user='user'))
    assert _fetch(api.shared.download_url('of-whom', user='user')) == (200, 'x')
    assert _fetch(api.shared.download_url('of-whom', user='user').replace('username=user', 'username=root'))[0] == 401


async def a_signed_url_ends(api):
    await go(api.shared.files.write('for-a-while', 'x'))
    assert _fetch(api.shared.download_url('for-a-while', use_signature_expiration=100)) == (200, 'x')
    status, text = _fetch(api.shared.download_url('for-a-while', use_signature_expiration=-100))
    assert (status, text) == (401, '{"code":401,"message":"signature is already expired"}')
