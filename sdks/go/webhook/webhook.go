// Package webhook is for receivers: it verifies the calls of timers, and answers them.
//
//	verifier, err := webhook.NewVerifier(os.Getenv("SIGNING_SECRET"))
//	http.Handle("POST /hooks/cart", verifier.Handler(func(ctx context.Context, call *webhook.Call) webhook.Answer {
//		remind(ctx, call.Body)
//		return webhook.OK()
//	}))
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	defaultTolerance = 5 * time.Minute
	secretPrefix     = "whsec_"
	secretBytesMin   = 24
	secretBytesMax   = 64
)

// Why a call is not genuine. Ask with errors.Is.
var (
	ErrNoSecret  = errors.New("webhook: there is no secret to verify with")
	ErrHeader    = errors.New("webhook: webhook-id, webhook-timestamp or webhook-signature is missing")
	ErrTimestamp = errors.New("webhook: the timestamp is malformed, or too far from now")
	ErrSignature = errors.New("webhook: no signature is right")
)

// Verifier checks signatures by the Standard Webhooks specification. It may be used by many goroutines at once.
type Verifier struct {
	// Tolerance is how far the timestamp of a call may lie from now; 5 minutes unless given.
	Tolerance time.Duration
	// Now is the clock; [time.Now] unless given.
	Now func() time.Time
	// Seen drops repeated calls, if it is given.
	Seen Seen

	keys [][]byte
}

// NewVerifier makes a verifier from secrets (whsec_…): each text has one, or several separated by commas while one
// replaces the other.
func NewVerifier(secrets ...string) (*Verifier, error) {
	verifier := &Verifier{Tolerance: defaultTolerance, Now: time.Now}
	for _, secret := range strings.Split(strings.Join(secrets, ","), ",") {
		key, err := decode(strings.TrimSpace(secret))
		if err != nil {
			return nil, err
		}
		verifier.keys = append(verifier.keys, key)
	}
	return verifier, nil
}

func decode(secret string) ([]byte, error) {
	text, found := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if !found || err != nil || len(key) < secretBytesMin || len(key) > secretBytesMax {
		// Never with the text: it may be a secret with a typing error.
		return nil, fmt.Errorf("webhook: a secret must be %s and then %d to %d bytes as base64", secretPrefix, secretBytesMin, secretBytesMax)
	}
	return key, nil
}

// Sign makes the value of webhook-signature, as the service does. It is for tests of receivers.
func (v *Verifier) Sign(id string, at time.Time, body []byte) string {
	signatures := make([]string, len(v.keys))
	for i, key := range v.keys {
		mac := sign(key, id, strconv.FormatInt(at.Unix(), 10), body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac)
	}
	return strings.Join(signatures, " ")
}

func sign(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify returns the call, or why it is not genuine. The body must be what was received, byte for byte.
func (v *Verifier) Verify(header http.Header, body []byte) (*Call, error) {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	signatures, signed := header["Webhook-Signature"]
	switch {
	case len(v.keys) == 0:
		return nil, ErrNoSecret
	case id == "" || timestamp == "" || !signed:
		return nil, ErrHeader
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return nil, ErrTimestamp
	}
	sentAt := time.Unix(int64(seconds), 0).UTC()
	now := time.Unix(v.Now().Unix(), 0)
	if now.Sub(sentAt).Abs() > v.Tolerance {
		return nil, ErrTimestamp
	}
	if !v.anyIsRight(strings.Fields(strings.Join(signatures, " ")), id, timestamp, body) {
		return nil, ErrSignature
	}
	return newCall(header, body, sentAt), nil
}

// anyIsRight compares every signature with every key in constant time.
func (v *Verifier) anyIsRight(signatures []string, id, timestamp string, body []byte) bool {
	right := false
	for _, key := range v.keys {
		wanted := sign(key, id, timestamp, body)
		for _, signature := range signatures {
			text, _ := strings.CutPrefix(signature, "v1,")
			given, err := base64.StdEncoding.DecodeString(text)
			if err == nil && text != signature && hmac.Equal(wanted, given) {
				right = true
			}
		}
	}
	return right
}

// Call is a call of a timer. What it does not have is the zero value.
type Call struct {
	// ID is the webhook-id: the same for every attempt of one due time, so that repetitions can be dropped.
	ID          string
	TimerID     string
	Namespace   string
	Attempt     int
	ScheduledAt time.Time
	// SentAt is the webhook-timestamp, which has whole seconds.
	SentAt        time.Time
	CorrelationID string
	// TraceParent and TraceState continue the trace of the call.
	TraceParent string
	TraceState  string
	Header      http.Header
	// Body exactly as it was received.
	Body json.RawMessage
}

func newCall(header http.Header, body []byte, sentAt time.Time) *Call {
	attempt, _ := strconv.Atoi(header.Get("X-Timer-Attempt"))
	scheduledAt, _ := time.Parse(time.RFC3339Nano, header.Get("X-Timer-Scheduled-At"))
	return &Call{
		ID:            header.Get("Webhook-Id"),
		TimerID:       header.Get("X-Timer-Id"),
		Namespace:     header.Get("X-Timer-Namespace"),
		Attempt:       attempt,
		ScheduledAt:   scheduledAt,
		SentAt:        sentAt,
		CorrelationID: header.Get("X-Correlation-Id"),
		TraceParent:   header.Get("Traceparent"),
		TraceState:    header.Get("Tracestate"),
		Header:        header,
		Body:          body,
	}
}

// Lateness is how long after its due time the call was sent, never below 0.
func (c *Call) Lateness() time.Duration {
	if c.ScheduledAt.IsZero() {
		return 0
	}
	return max(c.SentAt.Sub(c.ScheduledAt), 0)
}

// Decode reads the payload of a call: its body, or what stands there as payload in the timer protocol.
func (c *Call) Decode(payload any) error {
	var wrapped struct {
		TimerID string          `json:"timerId"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(c.Body, &wrapped) == nil && wrapped.TimerID != "" && wrapped.TimerID == c.TimerID {
		return json.Unmarshal(wrapped.Payload, payload)
	}
	return json.Unmarshal(c.Body, payload)
}
