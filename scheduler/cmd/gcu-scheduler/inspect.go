package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/version"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"github.com/topscloud/topscloud/scheduler/gcufit"
	"github.com/topscloud/topscloud/scheduler/inspect"
)

// inspectShutdown is how long answers under way may take when the scheduler stops.
const inspectShutdown = 5 * time.Second

// serveInspect serves the older scheduler's inspect answers on an address of their own, with the
// certificate, authentication and authorization of the scheduler's secure port: a caller needs "get" on
// the path as a nonResourceURL.
func serveInspect(ctx context.Context, address string, cc *schedulerconfig.CompletedConfig, factory *gcufit.Factory) error {
	if cc.SecureServing == nil {
		return fmt.Errorf("--inspect-bind-address %s: needs the secure port, which is off", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--inspect-bind-address: %w", err)
	}
	serving := *cc.SecureServing
	serving.Listener = listener
	handler := guarded(inspect.Handler(factory.Ledger(), cc.InformerFactory.Core().V1().Pods().Lister(), version.Get().String()), cc)
	if _, _, err := serving.Serve(handler, inspectShutdown, ctx.Done()); err != nil {
		return fmt.Errorf("--inspect-bind-address %s: %w", address, err)
	}
	return nil
}

func guarded(handler http.Handler, cc *schedulerconfig.CompletedConfig) http.Handler {
	resolver := server.NewRequestInfoResolver(&server.Config{})
	handler = genericapifilters.WithAuthorization(handler, cc.Authorization.Authorizer, scheme.Codecs)
	handler = genericapifilters.WithAuthentication(handler, cc.Authentication.Authenticator, genericapifilters.Unauthorized(scheme.Codecs), nil, nil)
	handler = genericapifilters.WithRequestInfo(handler, &apirequest.RequestInfoFactory{})
	handler = genericapifilters.WithCacheControl(handler)
	return genericfilters.WithPanicRecovery(handler, resolver)
}
