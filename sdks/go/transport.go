package timer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	backoffBase = 100 * time.Millisecond
	backoffMax  = 2 * time.Second
)

// call is one request, whatever the number of its attempts.
type call struct {
	method, path string
	query        url.Values
	body         []byte
	accept       string
	header       http.Header
	// idempotent calls are retried: a second request does no harm if the answer to the first was lost.
	idempotent bool
}

type envelope struct {
	Code    *int            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query, idempotent: true}
}

// do makes the call and reads the data of its answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, request call, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.repeat(ctx, request, func() error {
		response, err := c.send(ctx, request)
		if err != nil {
			return unreachable(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return unreachable(err)
		}
		return read(response, text, out)
	})
}

// open makes the call and returns the answer with its body unread, for streams and exports.
func (c *Client) open(ctx context.Context, request call) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := c.repeat(ctx, request, func() error {
		response, err := c.send(ctx, request)
		if err != nil {
			return unreachable(err)
		}
		if response.StatusCode == http.StatusOK {
			body = response.Body
			return nil
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return read(response, text, nil)
	})
	return body, err
}

// repeat makes attempts until one succeeds, fails for good, or there is no time or no retry left.
func (c *Client) repeat(ctx context.Context, request call, attempt func() error) error {
	for retry := 0; ; retry++ {
		err := attempt()
		if err == nil {
			return nil
		}
		failure, ok := err.(*Error)
		if !ok || !request.idempotent || retry >= c.retries || !failure.temporary() || ctx.Err() != nil {
			return err
		}
		wait := max(failure.RetryAfter, jitter(retry))
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return err
		}
		if c.sleep(ctx, wait) != nil {
			return err
		}
	}
}

// jitter is "full jitter": clients that failed together do not come back together.
func jitter(retry int) time.Duration {
	return rand.N(min(backoffBase<<min(retry, 16), backoffMax))
}

func (c *Client) send(ctx context.Context, request call) (*http.Response, error) {
	target := c.url + request.path
	if len(request.query) > 0 {
		target += "?" + request.query.Encode()
	}
	var body io.Reader
	if request.body != nil {
		body = bytes.NewReader(request.body)
	}
	sent, err := http.NewRequestWithContext(ctx, request.method, target, body)
	if err != nil {
		return nil, err
	}
	for name, values := range request.header {
		sent.Header[name] = values
	}
	sent.Header.Set("X-API-Key", c.apiKey)
	sent.Header.Set("User-Agent", "timer-go/"+Version)
	sent.Header.Set("Accept", firstOf(request.accept, "application/json"))
	if request.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if c.trace != nil {
		if trace := c.trace(ctx); trace.TraceParent != "" {
			sent.Header.Set("Traceparent", trace.TraceParent)
			if trace.TraceState != "" {
				sent.Header.Set("Tracestate", trace.TraceState)
			}
		}
	}
	return c.httpClient.Do(sent)
}

// read turns an answer into its data or its error. An answer that is no envelope comes from something in between.
func read(response *http.Response, text []byte, out any) error {
	var answer envelope
	err := json.Unmarshal(text, &answer)
	failed := response.StatusCode < 200 || response.StatusCode > 299
	if failed || err != nil || answer.Code == nil || *answer.Code != 0 {
		return refusal(response, answer, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return &Error{kind: ErrUnexpected, Status: response.StatusCode, Message: "the answer cannot be read", cause: err}
	}
	return nil
}

func refusal(response *http.Response, answer envelope, malformed error) *Error {
	refused := &Error{
		Status:    response.StatusCode,
		Message:   answer.Message,
		RequestID: response.Header.Get("X-Request-Id"),
		data:      answer.Data,
	}
	refused.RetryAfter, _ = retryAfter(response.Header.Get("Retry-After"), time.Now())
	if answer.Code != nil {
		refused.Code = *answer.Code
	} else {
		refused.Message = fmt.Sprintf("the answer with status %d is none of the service", response.StatusCode)
		refused.cause = malformed
	}
	refused.kind = kindOf(refused.Status, refused.Code)
	refused.Field = fieldIn(refused)
	return refused
}

// retryAfter reads seconds or an HTTP date; what is neither asks for nothing.
func retryAfter(text string, now time.Time) (wait time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}
