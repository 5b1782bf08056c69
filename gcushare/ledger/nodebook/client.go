package nodebook

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxBook bounds what is read of an agent. 128 cards with 1,024 holders each, 400 bytes a holding.
const maxBook = 64 << 20

// Client asks the agent of this node. It is safe for concurrent use.
type Client struct {
	path  string
	http  *http.Client
	quiet time.Duration // an agent that sends nothing for so long is taken for gone
}

// NewClient returns a client for the socket at path, which need not exist yet.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{path: path, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, quiet: 3 * pulse}
}

func (c *Client) open(ctx context.Context, query string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/book"+query, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the node agent at %s: %w", c.path, err)
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1024))
		return nil, fmt.Errorf("ask the node agent at %s: %s: %s", c.path, answer.Status, strings.TrimSpace(string(text)))
	}
	return answer.Body, nil
}

// Get returns the book as it is now.
func (c *Client) Get(ctx context.Context) (*Book, error) {
	body, err := c.open(ctx, "")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxBook))
	if err != nil {
		return nil, fmt.Errorf("ask the node agent at %s: %w", c.path, err)
	}
	return Decode(text)
}

// Watch calls got with the book, at once and whenever it changed, until ctx ends or the agent does. It always
// returns an error that says why it ended; callers wait a little and watch again.
func (c *Client) Watch(ctx context.Context, got func(*Book)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.quiet, func() { cancel(errors.New("the node agent says nothing any more")) })
	defer silent.Stop()
	body, err := c.open(ctx, "?watch=1")
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxBook)
	for lines.Scan() {
		silent.Reset(c.quiet)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		book, err := Decode(line)
		if err != nil {
			return err
		}
		got(book)
	}
	if err := errors.Join(lines.Err(), context.Cause(ctx)); err != nil {
		return fmt.Errorf("watch the node agent at %s: %w", c.path, err)
	}
	return fmt.Errorf("watch the node agent at %s: it ended", c.path)
}
