package sandbox

import (
	"net"
	"testing"
)

// A resumed sandbox keeps its ports but for those that somebody else has taken in the meantime.
func TestPortsAreKeptWhereFree(t *testing.T) {
	t.Parallel()
	listeners := []string{Etcd, APIServer}
	former, err := choosePorts(nil, listeners)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: former[Etcd]})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	got, err := choosePorts(former, listeners)
	if err != nil {
		t.Fatal(err)
	}
	if got[Etcd] == former[Etcd] || got[Etcd] == got[APIServer] {
		t.Errorf("etcd got port %d: want another than %d and the API server's", got[Etcd], former[Etcd])
	}
	if got[APIServer] != former[APIServer] {
		t.Errorf("the API server got port %d: want %d again", got[APIServer], former[APIServer])
	}
}
