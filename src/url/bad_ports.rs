//! Ports of other protocols, and of services other than web sites.
//!
//! Decides: the list of the Fetch standard, section "port blocking", to which browsers send no HTTP requests, and the
//! usual ports of data stores, message brokers, machine management, printers and the like. A link may name any port
//! of any machine. Some of those servers, such as mail or chat, would execute an HTTP request as commands; others
//! hand out their data to any client. Browsers reach these services at home, a crawler has no reason to.
//! Limits: a service at another port is not recognized. Ports where public sites are common (8080, 8443, 3000, 9000)
//! are not listed.

/// In ascending order.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Default ports of services, by their documentation, in ascending order.
const SERVICE_PORTS: [u16; 61] = [
    445, 623, 873, // SMB, IPMI, rsync
    1080, 1099, 1433, 1434, 1521, 1883, // SOCKS, Java RMI, SQL Server, Oracle, MQTT
    2181, 2375, 2376, 2377, 2379, 2380, // ZooKeeper, Docker, etcd
    3050, 3260, 3306, 3389, // Firebird, iSCSI, MySQL, RDP
    4222, 4369, // NATS, Erlang
    5432, 5433, 5555, 5671, 5672, 5900, 5901, 5984, 5985, 5986, // PostgreSQL, adb, AMQP, VNC, CouchDB, WinRM
    6379, 6380, 6432, 6443, 7687, // Redis, PgBouncer, Kubernetes, Neo4j
    8009, 8086, 8300, 8301, 8302, 8500, 8883, // AJP, InfluxDB, Consul, MQTT
    9042, 9092, 9100, 9160, 9200, 9300, // Cassandra, Kafka, printers, Elasticsearch
    10250, 10255, 11210, 11211, 15672, 16379, // kubelet, Couchbase, memcached, RabbitMQ, Redis
    26379, 27017, 27018, 27019, 28017, 61613, // Redis, MongoDB, STOMP
];

/// Whether `port` belongs to another protocol, or to a service other than a web site.
#[inline]
pub fn is_bad_port(port: u16) -> bool {
    !matches!(port, 80 | 443) && (BAD_PORTS.binary_search(&port).is_ok() || SERVICE_PORTS.binary_search(&port).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_mail_and_none_of_the_web() {
        assert!(BAD_PORTS.is_sorted());
        assert!(BAD_PORTS.iter().all(|port| is_bad_port(*port)));
        assert!([80, 443, 8_080, 8_443, 81, 3_000, 65_535].iter().all(|port| !is_bad_port(*port)));
    }

    #[test]
    fn ports_of_data_stores_and_managers_of_machines() {
        assert!(SERVICE_PORTS.is_sorted() && SERVICE_PORTS.iter().all(|port| !BAD_PORTS.contains(port)));
        for port in [
            6_379, 11_211, 2_375, 2_376, 9_200, 9_300, 27_017, 5_432, 3_306, 1_433, 5_984, 6_443, 10_250, 8_500, 2_379,
            9_042, 5_672, 15_672, 445, 3_389, 5_900, 9_100, 1_883, 2_181, 9_092, 4_222, 873, 8_009, 1_521, 26_379,
            5_985, 623,
        ] {
            assert!(is_bad_port(port), "{port}");
        }
        for port in [
            81, 88, 591, 2_082, 2_083, 3_000, 4_200, 5_000, 7_000, 8_000, 8_008, 8_081, 8_088, 8_888, 9_000, 9_090,
            9_443, 10_000,
        ] {
            assert!(!is_bad_port(port), "{port} is one of public sites");
        }
    }
}
