//! Programs that do not speak HTTP: a probe connects to such a server and sends nothing. A closed
//! list; a server that is not on it is probed carefully.

use super::input::ListeningSocket;

/// Ports of databases, brokers, mail, directories, shells and streams, in order.
const PORTS: [u16; 60] = [
    21, 22, 23, 25, 53, 88, 110, 119, 139, 143, 389, 445, 465, 554, 587, 636, 873, 990, 993, 995,
    1025, 1433, 1521, 1723, 1883, 1935, 2181, 2525, 3050, 3306, 3389, 4150, 4222, 5060, 5222, 5269,
    5432, 5433, 5671, 5672, 5900, 6222, 6379, 6380, 6432, 6667, 7687, 8883, 9042, 9092, 9418,
    11211, 16379, 26257, 26379, 27017, 27018, 27019, 33060, 61613,
];

/// Programs that serve nothing else, as the kernel names them: 15 bytes at most.
const PROGRAMS: [&str; 33] = [
    "redis-server",
    "redis-sentinel",
    "valkey-server",
    "keydb-server",
    "memcached",
    "postgres",
    "postmaster",
    "pgbouncer",
    "mysqld",
    "mariadbd",
    "mongod",
    "mongos",
    "mosquitto",
    "sshd",
    "dropbear",
    "slapd",
    "named",
    "dnsmasq",
    "unbound",
    "vsftpd",
    "proftpd",
    "pure-ftpd",
    "smtpd",
    "exim4",
    "dovecot",
    "opensmtpd",
    "git-daemon",
    "rsync",
    "smbd",
    "beanstalkd",
    "ircd",
    "slirp4netns",
    "Xvnc",
];

/// Ports of administration, metrics and profiles: never what people mean while there is another.
pub(super) const fn is_admin_port(port: u16) -> bool {
    matches!(
        port,
        2019 | 6060 | 8444 | 9090 | 9091 | 9100 | 9180 | 9464 | 9901 | 14269 | 15020 | 15090
    )
}

/// Whether a program is one that never speaks HTTP.
pub(super) fn is_non_http_program(socket: &ListeningSocket) -> bool {
    PROGRAMS.contains(&socket.process.as_str())
}

/// Whether a port is one where HTTP is not spoken.
pub(super) fn is_non_http_port(port: u16) -> bool {
    PORTS.contains(&port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_no_longer_ones() {
        assert!(PROGRAMS.iter().all(|name| name.len() <= 15));
        assert!(is_non_http_port(5432) && !is_non_http_port(8080));
        assert!(is_admin_port(2019) && !is_admin_port(80));
    }
}
