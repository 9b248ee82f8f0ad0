//! The name server.

use crate::support::{NetnsFixture, ProxyTestCase};

pub(crate) const CASES: &[ProxyTestCase] = &[
    ("answers_are_what_resolvers_expect", answers),
    ("every_way_to_write_a_name_is_the_same_name", spellings),
    ("the_c_library_and_local_names_work", library),
];

/// A small DNS client.
pub(crate) const CLIENT: &str = "
import os, random, socket, struct
def query(name, kind=1, edns=False, ident=7, flags=0x100):
    labels = [part for part in name.split('.') if part]
    raw = b''.join(bytes([len(it)]) + it.encode('latin-1') for it in labels) + b'\\0'
    extra = b'\\0' + struct.pack('>HHIH', 41, 4096, 0, 0) if edns else b''
    counts = struct.pack('>HHHH', 1, 0, 0, 1 if edns else 0)
    return struct.pack('>HH', ident, flags) + counts + raw + struct.pack('>HH', kind, 1) + extra
def udp(message, wait=5):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(wait)
    s.connect(('198.18.0.1', 53))
    s.send(message)
    return s.recv(4096)
def tcp(*messages):
    s = socket.create_connection(('198.18.0.1', 53), 5)
    f = s.makefile('rb')
    answers = []
    for message in messages:
        s.sendall(struct.pack('>H', len(message)) + message)
        answers.append(f.read(struct.unpack('>H', f.read(2))[0]))
    return answers
def code(answer):
    return answer[3] & 15
def count(answer):
    return struct.unpack('>H', answer[6:8])[0]
def address(answer):
    assert (code(answer), count(answer)) == (0, 1), answer
    at = answer.rindex(b'\\xc0\\x0c')
    kind, klass, ttl, length = struct.unpack('>HHIH', answer[at + 2:at + 12])
    assert (kind, klass, length) == (1, 1, 4) and 0 < ttl <= 60, answer
    return socket.inet_ntoa(answer[at + 12:at + 16])
";

fn python(jail: &NetnsFixture, program: &str) -> String {
    jail.python(&format!("{CLIENT}{program}"))
}

fn answers() {
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&["web.test", "*.below.test"])
        .expect("a gate");
    let program = "
one, two = address(udp(query('web.test'))), address(udp(query('a.below.test')))
assert one != two and one.startswith('198.18.') and two.startswith('198.18.')
assert address(udp(query('web.test', edns=True))) == one
assert [address(it) for it in tcp(query('web.test'), query('a.below.test'))] == [one, two]
for kind in (28, 65, 16, 15, 2, 6, 33):
    answer = udp(query('web.test', kind))
    assert (code(answer), count(answer)) == (0, 0), answer
for name in ('evil.test', 'below.test', 'xbelow.test', 'test', '', '1.0.18.198.in-addr.arpa'):
    assert code(udp(query(name))) == 3, name
assert b'not in the allow list' in udp(query('evil.test', edns=True))
assert code(udp(query('web.test', flags=0x2900))) == 4
print('good')";
    assert_eq!(python(&jail, program), "good");
}

fn spellings() {
    let jail = NetnsFixture::new();
    let _gate = jail
        .start_proxy(&["web.test", "*.below.test"])
        .expect("a gate");
    let program = "
one = address(udp(query('web.test')))
asked = query('wEb.TeSt')
answer = udp(asked)
assert address(answer) == one
assert answer[12:len(asked)] == asked[12:], 'the case comes back'
for name in ('web.test\\x00', 'web.test\\x00.evil.test', 'web\\xad.test', 'w\\xe9b.test', 'web_.test'):
    assert code(udp(query(name))) == 3, name
whole = lambda label: bytes([len(label)]) + label
trick = query('x')[:12] + whole(b'web.test') + b'\\0' + struct.pack('>HH', 1, 1)
assert code(udp(trick)) == 3
trick = query('x')[:12] + whole(b'evil.below') + whole(b'test') + b'\\0' + struct.pack('>HH', 1, 1)
assert code(udp(trick)) == 3
long = '.'.join(['a' * 63] * 3 + ['a' * 40, 'below', 'test'])
assert len(long) == 243 and address(udp(query(long)))
assert code(udp(query('b' + long[1:] + '.' + 'evil'))) == 3
assert code(udp(query('a' * 64 + '.below.test'))) == 1
print('good')";
    assert_eq!(python(&jail, program), "good");
}

fn library() {
    let jail = NetnsFixture::new();
    let _gate = jail.start_proxy(&["web.test"]).expect("a gate");
    let program = "
import time
assert socket.gethostbyname('WEB.test.').startswith('198.18.')
assert {it[0] for it in socket.getaddrinfo('web.test', 80)} == {socket.AF_INET}
assert address(udp(query('localhost'))) == '127.0.0.1'
assert address(udp(query('app.localhost'))) == '127.0.0.1'
began = time.time()
try:
    socket.getaddrinfo('evil.test', 80)
except socket.gaierror as error:
    assert error.errno == socket.EAI_NONAME, error
assert time.time() - began < 1
print('good')";
    assert_eq!(python(&jail, program), "good");
}
