package realnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// podMask is that of all subnets.
const podMask = "255.255.255.0"

// subnets are the blocks set aside for documentation (RFC 5737), which nothing routes. A machine may use one for
// itself all the same, and two equal networks on one machine cut it off from the first.
var subnets = []subnet{
	{netip.MustParsePrefix("192.0.2.0/24")}, {netip.MustParsePrefix("198.51.100.0/24")}, {netip.MustParsePrefix("203.0.113.0/24")},
}

// subnet is the network of a node and its pods. Kubelet refuses a loopback address for its node; the bridge's own serves
// instead, and leads no farther than a loopback one.
type subnet struct{ netip.Prefix }

// node is the node's address, firstPod that of its first pod.
func (s subnet) node() string     { return s.Addr().Next().String() }
func (s subnet) firstPod() string { return s.Addr().Next().Next().String() }

// freeSubnet returns the first block in which this machine has no address.
func freeSubnet() (subnet, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return subnet{}, err
	}
	return chooseSubnet(addresses)
}

func chooseSubnet(addresses []net.Addr) (subnet, error) {
	for _, s := range subnets {
		taken := false
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				return subnet{}, fmt.Errorf("address %s of this machine: %w", a, err)
			}
			taken = taken || p.Overlaps(s.Prefix)
		}
		if !taken {
			return s, nil
		}
	}
	return subnet{}, errors.New("this machine has addresses in 192.0.2.0/24, 198.51.100.0/24 and 203.0.113.0/24: want one of them free for the node's pods")
}
