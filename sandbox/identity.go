package sandbox

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users of the parts that are not Kubernetes' own.
const (
	adminUser     = "gcu-sandbox-admin"
	simNodesUser  = "gcu-sandbox-nodes"
	schedulerUser = "system:serviceaccount:kube-system:gcu-scheduler"
)

// serviceAccountGroups are the groups the API server gives a token of a service account in
// kube-system; a certificate has to name them itself.
var serviceAccountGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}

// ConfigFor returns the configuration of a client that the API server knows by this user and these
// groups, through a client certificate of its own. The user has whatever RBAC gives it.
func (s *Sandbox) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := s.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            s.URL(),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.CAPEM(), CertData: pair.Cert, KeyData: pair.Key},
		QPS:             500,
		Burst:           1000,
		UserAgent:       "gcu-sandbox",
	}, nil
}

// ConfigForServiceAccount is ConfigFor with the name and groups of a service account.
func (s *Sandbox) ConfigForServiceAccount(namespace, name string) (*rest.Config, error) {
	return s.ConfigFor("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// writeKubeconfig writes a self-contained kubeconfig for a user.
func (s *Sandbox) writeKubeconfig(path, user string, groups ...string) error {
	pair, err := s.authority.Client(user, groups...)
	if err != nil {
		return err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["gcu-sandbox"] = &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.authority.CAPEM()}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
	c.Contexts["gcu-sandbox"] = &clientcmdapi.Context{Cluster: "gcu-sandbox", AuthInfo: user}
	c.CurrentContext = "gcu-sandbox"
	b, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
