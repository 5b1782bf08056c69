package realnode

import (
	"net"
	"testing"
)

// A machine whose own network is the block of the node's pods loses its gateway to the node.
func TestSubnetIsNotTheMachines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has  []string
		want string // the node's address, empty for an error
	}{
		"an ordinary machine":          {[]string{"127.0.0.1/8", "10.1.2.3/16", "fe80::1/64"}, "192.0.2.1"},
		"a machine in the first block": {[]string{"127.0.0.1/8", "192.0.2.2/24"}, "198.51.100.1"},
		"a part of a block counts":     {[]string{"192.0.2.129/30", "198.51.100.7/32"}, "203.0.113.1"},
		"so does a larger network":     {[]string{"192.0.0.1/8"}, "198.51.100.1"},
		"none is left":                 {[]string{"192.0.2.2/24", "198.51.100.2/24", "203.0.113.2/24"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var addresses []net.Addr
			for _, text := range c.has {
				ip, network, err := net.ParseCIDR(text)
				if err != nil {
					t.Fatal(err)
				}
				addresses = append(addresses, &net.IPNet{IP: ip, Mask: network.Mask})
			}
			got, err := chooseSubnet(addresses)
			if (err != nil) != (c.want == "") || err == nil && got.node() != c.want {
				t.Errorf("got %v, %v; want %q", got, err, c.want)
			}
		})
	}
}
