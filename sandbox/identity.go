package sandbox

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/topscloud/topscloud/sandbox/simnode"
)

// Users of the parts that are not Kubernetes' own.
const (
	adminUser     = "gcu-sandbox-admin"
	simNodesUser  = "gcu-sandbox-nodes"
	schedulerUser = "system:serviceaccount:kube-system:gcu-scheduler"
	// kubeletClientUser is the API server towards kubelets.
	kubeletClientUser = "kube-apiserver-kubelet-client"
)

// nodeNamespace is where the service accounts of what runs on nodes are.
const nodeNamespace = "kube-system"

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

// ConfigForAgent returns the configuration of the node agent of a node, which must exist.
func (s *Sandbox) ConfigForAgent(ctx context.Context, node string) (*rest.Config, error) {
	return s.ConfigOnNode(ctx, node, simnode.AgentAccount)
}

// ConfigOnNode returns the configuration of a program that runs on a node under a service account of kube-system; both
// must exist. It has a token that is bound to the node, as the token of a pod on that node would be: the admission
// policies look at that.
func (s *Sandbox) ConfigOnNode(ctx context.Context, node, account string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return nil, err
	}
	object, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	seconds := int64((24 * time.Hour).Seconds())
	request, err := client.CoreV1().ServiceAccounts(nodeNamespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node, UID: object.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of %s for node %s: %w", account, node, err)
	}
	return &rest.Config{
		Host: s.URL(), BearerToken: request.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.CAPEM()},
		QPS:             100, Burst: 200, UserAgent: account,
	}, nil
}

// NodeCredentials are the files with which a kubelet joins the cluster.
type NodeCredentials struct {
	// Kubeconfig makes it the node, with the rights the Node authorizer gives.
	Kubeconfig string
	// Cert and Key are what it serves with, CA the authority of clients.
	Cert, Key, CA string
}

// Join issues the credentials of a node that is reached at loopback or at one of the hosts. Nothing else has to be done
// for a kubelet to register.
func (s *Sandbox) Join(node string, hosts ...string) (NodeCredentials, error) {
	c := NodeCredentials{Kubeconfig: s.layout.Config("node-" + node + ".kubeconfig"), CA: s.authority.CAFile()}
	if err := s.writeKubeconfig(c.Kubeconfig, "system:node:"+node, "system:nodes"); err != nil {
		return NodeCredentials{}, err
	}
	server, err := s.authority.Server("system:node:"+node, append([]string{node}, hosts...)...)
	if err != nil {
		return NodeCredentials{}, err
	}
	c.Cert, c.Key, err = s.authority.Write("node-"+node, server)
	return c, err
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
