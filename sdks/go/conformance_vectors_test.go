package timer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/timertest"
	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

// TestVectors compares with the results that all SDKs agree on.
func TestVectors(t *testing.T) {
	tests := map[string]func(*testing.T, []byte){
		"calls": testCalls, "durations": testDurations, "errors": testErrors, "exact_json": testExactJSON,
		"instants": testInstants, "protocol": testProtocol, "retries": testRetries, "retry_after": testRetryAfter,
		"signatures": testSignatures,
	}
	runEach(t, "vectors/", "vectors/*.json", func(t *testing.T, text []byte) {
		name := strings.TrimPrefix(t.Name(), "TestVectors/vectors/")
		test, ok := tests[name]
		if !ok {
			t.Fatal("there is no test of these vectors")
		}
		test(t, text)
	})
}

// headers are read in the order of the text: the last of two spellings counts.
type headers struct{ http.Header }

func (h *headers) UnmarshalJSON(text []byte) error {
	h.Header = http.Header{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		var name json.Token
		var value string
		name, err = decoder.Token()
		if err == nil {
			err = decoder.Decode(&value)
			h.Set(name.(string), value)
		}
	}
	return err
}

const vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func testCalls(t *testing.T, text []byte) {
	var vectors struct {
		Cases []struct {
			Name    string
			Headers headers
			Body    string
			Call    map[string]any
		}
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Cases {
		verifier := verifierAt(t, vector.Call["sent_at"].(string))
		sentAt := verifier.Now()
		vector.Headers.Set("Webhook-Signature", verifier.Sign(vector.Headers.Get("Webhook-Id"), sentAt, []byte(vector.Body)))
		call, err := verifier.Verify(vector.Headers.Header, []byte(vector.Body))
		if err != nil {
			t.Errorf("%s: %v", vector.Name, err)
			continue
		}
		if err := matches(vector.Call, callShape(call), vector.Name); err != nil {
			t.Error(err)
		}
	}
}

func verifierAt(t *testing.T, at string) *webhook.Verifier {
	verifier, err := webhook.NewVerifier(vectorSecret)
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	verifier.Now = func() time.Time { return now }
	return verifier
}

func testDurations(t *testing.T, text []byte) {
	var vectors struct {
		Format []struct {
			US   int64
			Text string
		}
		Refused []int64
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Format {
		duration := time.Duration(vector.US) * time.Microsecond
		if got := timer.FormatDuration(duration); got != vector.Text {
			t.Errorf("%v is written %s, not %s", duration, got, vector.Text)
		}
		if got, err := timer.ParseDuration(vector.Text); err != nil || got != duration {
			t.Errorf("%s is read as %v, %v", vector.Text, got, err)
		}
	}
	for _, us := range vectors.Refused {
		delay := time.Duration(us) * time.Microsecond
		if body, err := timer.ObjectOf(timer.NewTimer{Delay: delay}); err == nil {
			t.Errorf("%v is sent as %s", delay, body)
		}
	}
}

func testErrors(t *testing.T, text []byte) {
	var vectors struct {
		Cases []struct {
			Status  int
			Headers headers
			Body    string
			Error   map[string]any
		}
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Cases {
		err := timer.ReadAnswer(&http.Response{StatusCode: vector.Status, Header: vector.Headers.Header}, []byte(vector.Body), nil)
		if err == nil {
			t.Errorf("%d %s is no error", vector.Status, vector.Body)
			continue
		}
		if vector.Error["message"] == nil {
			delete(vector.Error, "message")
		}
		if err := matches(vector.Error, errorShape(err), vector.Body); err != nil {
			t.Error(err)
		}
	}
}

func testExactJSON(t *testing.T, text []byte) {
	var vectors struct{ Texts []string }
	decode(t, text, &vectors)
	dev := timertest.Start(t)
	for i, exact := range vectors.Texts {
		created, err := dev.Client.Timers.Create(t.Context(), timer.NewTimer{
			Delay: time.Hour, Metadata: json.RawMessage(exact),
			Callback: timer.HTTP{URL: fmt.Sprintf("%s/exact/%d", dev.Receiver, i), Payload: json.RawMessage(exact)},
		})
		if err != nil {
			t.Errorf("%s: %v", exact, err)
			continue
		}
		read, err := dev.Client.Timers.Get(t.Context(), created.ID)
		if err != nil || string(read.Callback.Payload) != exact {
			t.Errorf("the payload %s is %s, %v", exact, read.Callback.Payload, err)
		}
		if string(read.Metadata) != exact && (exact != "null" || read.Metadata != nil) {
			t.Errorf("the metadata %s is %s", exact, read.Metadata)
		}
		dev.Advance(time.Hour)
		if call := dev.WaitFor(timertest.Calls{Timer: created.ID}); call.Body != exact {
			t.Errorf("%s was delivered as %s", exact, call.Body)
		}
	}
}

func testInstants(t *testing.T, text []byte) {
	type instant struct {
		Text string
		US   int64
	}
	var vectors struct{ Parse, Format []instant }
	decode(t, text, &vectors)
	for _, vector := range vectors.Parse {
		var read timer.Timer
		decode(t, []byte(fmt.Sprintf(`{"execute_at":%q}`, vector.Text)), &read)
		if read.ExecuteAt.UnixMicro() != vector.US {
			t.Errorf("%s is %v", vector.Text, read.ExecuteAt)
		}
	}
	for _, vector := range vectors.Format {
		body, err := timer.ObjectOf(timer.Update{ExecuteAt: time.UnixMicro(vector.US)})
		if err != nil || string(body) != fmt.Sprintf(`{"execute_at":%q}`, vector.Text) {
			t.Errorf("%s is sent as %s, %v", vector.Text, body, err)
		}
	}
}

func testProtocol(t *testing.T, text []byte) {
	var vectors struct {
		Cases []struct {
			Answer   string
			Next, At time.Time
			Seconds  int
			Status   int
			Headers  headers
			Body     any
		}
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Cases {
		answers := map[string]webhook.Answer{
			"done": webhook.Done(), "again": webhook.Again(vector.At), "failed": webhook.Failed(),
			"retry_after": webhook.RetryAfter(time.Duration(vector.Seconds) * time.Second),
		}
		if !vector.Next.IsZero() {
			answers["done"] = webhook.DoneAgain(vector.Next)
		}
		got := answered(t, answers[vector.Answer])
		var body any
		_ = json.Unmarshal(got.Body.Bytes(), &body)
		if got.Code != vector.Status || !reflect.DeepEqual(body, vector.Body) {
			t.Errorf("%s is %d %s", vector.Answer, got.Code, got.Body)
		}
		for name := range vector.Headers.Header {
			if got.Header().Get(name) != vector.Headers.Get(name) {
				t.Errorf("%s has %s %q", vector.Answer, name, got.Header().Get(name))
			}
		}
	}
}

func testRetries(t *testing.T, text []byte) {
	var vectors struct {
		Cases []struct {
			Call    string
			Args    map[string]any
			Outcome any
			Retried bool
		}
	}
	decode(t, text, &vectors)
	dev := timertest.Start(t)
	network := startNetwork(t, dev.URL)
	client, err := timer.NewClient(timer.WithURL(network.url), timer.WithAPIKey(dev.APIKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, vector := range vectors.Cases {
		run := newRun(t, dev, network)
		given := run.filled(vector.Args).(map[string]any)
		fault := map[string]any{"do": "answer", "status": vector.Outcome, "body": ""}
		switch vector.Outcome {
		case "unreachable":
			fault = map[string]any{"do": "drop"}
		case "cut":
			fault = map[string]any{"do": "cut"}
		}
		if _, err := network.control("PUT", "/-/faults", []any{fault}); err != nil {
			t.Fatal(err)
		}
		_, _ = calls[vector.Call](t.Context(), client, given)
		seen, err := network.control("GET", "/-/requests", nil)
		if err != nil {
			t.Fatal(err)
		}
		if count := len(seen.(map[string]any)["requests"].([]any)); (count == 2) != vector.Retried {
			t.Errorf("%s after %v was sent %d times", vector.Call, vector.Outcome, count)
		}
	}
}

func testRetryAfter(t *testing.T, text []byte) {
	var vectors struct {
		Cases []struct {
			Value string
			Now   int64
			MS    *int64
		}
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Cases {
		wait, ok := timer.ReadRetryAfter(vector.Value, time.Unix(vector.Now, 0))
		if ok != (vector.MS != nil) || ok && wait.Milliseconds() != *vector.MS {
			t.Errorf("%q asks for %v, %v", vector.Value, wait, ok)
		}
	}
}

func testSignatures(t *testing.T, text []byte) {
	var vectors struct {
		Sign []struct {
			Secret, ID, Body, Signature string
			Timestamp                   int64
		}
		Verify []struct {
			Name             string
			Secrets          []string
			Headers          headers
			Body             string
			Now              int64
			ToleranceSeconds int64 `json:"tolerance_seconds"`
			Valid            bool
			Reason           string
		}
		BadSecrets []string `json:"bad_secrets"`
	}
	decode(t, text, &vectors)
	for _, vector := range vectors.Sign {
		verifier, err := webhook.NewVerifier(vector.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := verifier.Sign(vector.ID, time.Unix(vector.Timestamp, 0), []byte(vector.Body)); got != vector.Signature {
			t.Errorf("%s is signed %s", vector.Body, got)
		}
	}
	reasons := map[string]error{
		"": nil, "header": webhook.ErrHeader, "timestamp": webhook.ErrTimestamp, "signature": webhook.ErrSignature, "secret": webhook.ErrNoSecret,
	}
	for _, vector := range vectors.Verify {
		verifier := &webhook.Verifier{}
		if len(vector.Secrets) > 0 {
			var err error
			if verifier, err = webhook.NewVerifier(vector.Secrets...); err != nil {
				t.Errorf("%s: %v", vector.Name, err)
				continue
			}
		}
		verifier.Tolerance = time.Duration(vector.ToleranceSeconds) * time.Second
		verifier.Now = func() time.Time { return time.Unix(vector.Now, 0) }
		if _, err := verifier.Verify(vector.Headers.Header, []byte(vector.Body)); err != reasons[vector.Reason] || (err == nil) != vector.Valid {
			t.Errorf("%s: %v", vector.Name, err)
		}
	}
	for _, secret := range vectors.BadSecrets {
		if _, err := webhook.NewVerifier(secret); err == nil {
			t.Errorf("%q is taken for a secret", secret)
		}
	}
}

// answered is what a receiver sends for an answer.
func answered(t *testing.T, answer webhook.Answer) *httptest.ResponseRecorder {
	verifier := verifierAt(t, "2030-01-01T00:00:00Z")
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	request.Header.Set("Webhook-Id", "a")
	request.Header.Set("Webhook-Timestamp", fmt.Sprint(verifier.Now().Unix()))
	request.Header.Set("Webhook-Signature", verifier.Sign("a", verifier.Now(), []byte("{}")))
	recorder := httptest.NewRecorder()
	verifier.Handler(func(context.Context, *webhook.Call) webhook.Answer { return answer }).ServeHTTP(recorder, request)
	return recorder
}
