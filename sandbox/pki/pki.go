package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates and keeps its files in one folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Pair is a certificate and its key, both PEM.
type Pair struct{ Cert, Key []byte }

// File names within the folder.
const (
	caCert            = "ca.crt"
	caKey             = "ca.key"
	serviceAccountKey = "service-account.key"
)

// Open reads the authority of a folder, or makes it.
func Open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	certPEM, err := os.ReadFile(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create()
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, caKey))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("%s: certificate or key of the authority is not PEM", dir)
	}
	if a.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, caCert), err)
	}
	if a.key, err = x509.ParseECPrivateKey(keyBlock.Bytes); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, caKey), err)
	}
	a.pem = certPEM
	return a, nil
}

func (a *Authority) create() error {
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "gcu-sandbox"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	_, saPEM, err := newKey()
	if err != nil {
		return err
	}
	a.key, a.pem = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	// The certificate goes last: Open takes its presence for a complete folder.
	for _, f := range []struct {
		name string
		data []byte
	}{{serviceAccountKey, saPEM}, {caKey, keyPEM}, {caCert, a.pem}} {
		if err := os.WriteFile(filepath.Join(a.dir, f.name), f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// CAFile returns the path of the authority's certificate, CAKeyFile that of its key.
func (a *Authority) CAFile() string    { return filepath.Join(a.dir, caCert) }
func (a *Authority) CAKeyFile() string { return filepath.Join(a.dir, caKey) }

// ServiceAccountKeyFile returns the path of the key that signs service-account tokens.
func (a *Authority) ServiceAccountKeyFile() string { return filepath.Join(a.dir, serviceAccountKey) }

// CAPEM returns the authority's certificate.
func (a *Authority) CAPEM() []byte { return a.pem }

// Server issues a certificate for a server on loopback, usable as a client too, since etcd dials itself.
func (a *Authority) Server(name string, hosts ...string) (Pair, error) {
	t := leaf(name)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	t.DNSNames = []string{"localhost"}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return a.sign(t)
}

// Client issues a client certificate; Kubernetes reads it as a user with groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	t := leaf(user)
	t.Subject.Organization = groups
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t)
}

// Write stores a pair as <name>.crt and <name>.key and returns both paths.
func (a *Authority) Write(name string, p Pair) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	return certFile, keyFile, errors.Join(os.WriteFile(certFile, p.Cert, 0o600), os.WriteFile(keyFile, p.Key, 0o600))
}

func leaf(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().AddDate(1, 0, 0),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func (a *Authority) sign(t *x509.Certificate) (Pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", t.Subject.CommonName, err)
	}
	return Pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM}, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
