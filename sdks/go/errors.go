package timer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// The kinds of failure. Ask with errors.Is; errors.As with [*Error] has the details.
var (
	ErrInvalid      = errors.New("invalid request")
	ErrNotFound     = errors.New("not found")
	ErrUnauthorized = errors.New("unauthorized")
	ErrTooMany      = errors.New("too many requests")
	ErrConflict     = errors.New("conflict")
	ErrUnavailable  = errors.New("service unavailable")
	ErrUnreachable  = errors.New("service unreachable")
	ErrUnexpected   = errors.New("unexpected answer")
)

// Error is a call that was not carried out, or whose outcome is not known ([ErrUnreachable], [ErrUnavailable]).
type Error struct {
	// Status of the HTTP answer; 0 if there was none.
	Status int
	// Code of the envelope: 1 unexpected, 2 validation, 3 not found, 4 unauthorized, 5 too many requests, 6 conflict.
	Code int
	// Message in the words of the service.
	Message string
	// Field that breaks a rule, where the message begins with one.
	Field string
	// RequestID under which the log of the service has the request.
	RequestID string
	// RetryAfter says when the next request may come, if the answer did.
	RetryAfter time.Duration

	kind  error
	cause error
	data  json.RawMessage
}

func (e *Error) Error() string {
	text := "timer: " + e.Message
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	if e.RequestID != "" {
		text += fmt.Sprintf(" (status %d, request %s)", e.Status, e.RequestID)
	}
	return text
}

// Is compares with the kinds of failure.
func (e *Error) Is(target error) bool { return target == e.kind }

// Unwrap returns what the network said, such as [context.DeadlineExceeded].
func (e *Error) Unwrap() error { return e.cause }

// temporary failures are worth a second attempt of an idempotent call.
func (e *Error) temporary() bool {
	switch e.Status {
	case 0, http.StatusTooManyRequests:
		return true
	}
	return e.kind == ErrUnavailable
}

func unreachable(cause error) *Error {
	return &Error{kind: ErrUnreachable, Message: "the service cannot be reached", cause: cause}
}

// kindOf decides by the code of the envelope, and by the status where something in between has answered without one.
func kindOf(status, code int) error {
	switch status {
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ErrUnavailable
	}
	if code == 0 {
		code = codeOf(status)
	}
	switch code {
	case codeInvalid:
		return ErrInvalid
	case codeNotFound:
		return ErrNotFound
	case codeUnauthorized:
		return ErrUnauthorized
	case codeTooMany:
		return ErrTooMany
	case codeConflict:
		return ErrConflict
	}
	return ErrUnexpected
}

// Codes of the envelope.
const (
	codeUnexpected = iota + 1
	codeInvalid
	codeNotFound
	codeUnauthorized
	codeTooMany
	codeConflict
)

// codeOf is the code that goes with a status.
func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return codeInvalid
	case http.StatusNotFound:
		return codeNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return codeUnauthorized
	case http.StatusTooManyRequests:
		return codeTooMany
	case http.StatusConflict, http.StatusPreconditionFailed:
		return codeConflict
	}
	return codeUnexpected
}

// A message about a field begins with its path, in quotes if the name is not one of the service, and goes on with the rule.
var fieldRule = regexp.MustCompile(`^(?:'([^']+)'|([A-Za-z][A-Za-z0-9_.-]*)) (?:must|is|or|cannot|belongs)\b`)

func fieldIn(refused *Error) string {
	if refused.kind != ErrInvalid {
		return ""
	}
	if match := fieldRule.FindStringSubmatch(refused.Message); match != nil {
		return match[1] + match[2]
	}
	return ""
}
