// Package timer is the client of Timer Platform, a durable timer service: register "call this at that time", and at that
// time the call is made.
//
//	client, err := timer.NewClient() // TIMER_URL and TIMER_API_KEY
//	created, err := client.Timers.Create(ctx, timer.NewTimer{
//		Delay:    15 * time.Minute,
//		Callback: timer.HTTP{URL: "https://shop.example/hooks/cart", Payload: map[string]int{"cart": 4711}},
//	})
//
// Idempotent requests are retried when the service cannot be reached, is not available or limits the rate. A create is made
// idempotent by an id that the client makes. Every failure is an [*Error]. Receivers use package webhook, tests package
// timertest.
package timer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Version of this package, which is that of the service it was made with.
const Version = "0.1.0"

const (
	defaultURL     = "http://127.0.0.1:8080"
	defaultTimeout = 10 * time.Second
	defaultRetries = 3
)

// Client calls one service. It may be used by many goroutines at once.
type Client struct {
	Timers     *Timers
	Groups     *Groups
	Operations *Operations
	Keys       *Keys
	Stats      *Stats

	url        string
	apiKey     string
	timeout    time.Duration
	retries    int
	httpClient *http.Client
	trace      func(context.Context) TraceContext
	sleep      func(context.Context, time.Duration) error
}

// TraceContext has the W3C headers of the trace that a request belongs to.
type TraceContext struct {
	TraceParent string
	TraceState  string
}

// ClientOption changes how a [Client] works.
type ClientOption func(*Client)

// WithURL names the service, with its base path if it has one. Without it TIMER_URL does, else it is http://127.0.0.1:8080.
func WithURL(url string) ClientOption { return func(c *Client) { c.url = url } }

// WithAPIKey gives the key that is sent as X-API-Key. Without it, TIMER_API_KEY or API_KEY does.
func WithAPIKey(key string) ClientOption { return func(c *Client) { c.apiKey = key } }

// WithTimeout limits a call, all its attempts together; 10 s unless given. A context with an earlier deadline wins.
func WithTimeout(timeout time.Duration) ClientOption { return func(c *Client) { c.timeout = timeout } }

// WithRetries says how often an idempotent call is retried at most; 3 unless given.
func WithRetries(retries int) ClientOption { return func(c *Client) { c.retries = retries } }

// WithHTTPClient replaces [http.DefaultClient]. Redirects are not followed, so that the key stays with this service.
func WithHTTPClient(httpClient *http.Client) ClientOption {
	return func(c *Client) { c.httpClient = httpClient }
}

// WithTrace reads the trace context of a request from its context, for example with the propagator of OpenTelemetry.
func WithTrace(trace func(context.Context) TraceContext) ClientOption {
	return func(c *Client) { c.trace = trace }
}

// NewClient makes a client from options and the environment. It opens no connection.
func NewClient(options ...ClientOption) (*Client, error) {
	c := &Client{
		url:        firstOf(os.Getenv("TIMER_URL"), defaultURL),
		apiKey:     firstOf(os.Getenv("TIMER_API_KEY"), os.Getenv("API_KEY")),
		timeout:    defaultTimeout,
		retries:    defaultRetries,
		httpClient: http.DefaultClient,
		sleep:      sleep,
	}
	for _, option := range options {
		option(c)
	}
	if c.apiKey == "" {
		return nil, errors.New("timer: no API key: set TIMER_API_KEY or use WithAPIKey")
	}
	parsed, err := url.Parse(c.url)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return nil, fmt.Errorf("timer: %q is not an http or https URL", c.url)
	}
	c.url = strings.TrimRight(c.url, "/")
	direct := *c.httpClient
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.httpClient = &direct
	c.Timers = &Timers{c}
	c.Groups = &Groups{c}
	c.Operations = &Operations{c}
	c.Keys = &Keys{c}
	c.Stats = &Stats{c}
	return c, nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
