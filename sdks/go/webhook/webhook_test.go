package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func verifier(t *testing.T) *webhook.Verifier {
	t.Helper()
	made, err := webhook.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func send(t *testing.T, handler http.Handler, signedBody, sentBody string) *httptest.ResponseRecorder {
	t.Helper()
	now := time.Now()
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(sentBody))
	request.Header.Set("Webhook-Id", "call-1")
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("Webhook-Signature", verifier(t).Sign("call-1", now, []byte(signedBody)))
	request.Header.Set("X-Timer-Id", "t")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func TestTheMiddlewarePassesOnTheCallAndItsBody(t *testing.T) {
	handler := verifier(t).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, _ := webhook.FromContext(r.Context())
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, call.TimerID+" "+string(body))
	}))
	if answer := send(t, handler, "{}", "{}"); answer.Code != 200 || answer.Body.String() != "t {}" {
		t.Error(answer.Code, answer.Body)
	}
	if answer := send(t, handler, "{}", "[]"); answer.Code != 401 {
		t.Error(answer.Code, answer.Body)
	}
}

func TestACallIsHandledOnceUnlessItFailed(t *testing.T) {
	seeing := verifier(t)
	seeing.Seen = webhook.NewMemory(10)
	answers := []webhook.Answer{webhook.RetryAfter(time.Minute), webhook.OK()}
	handled := 0
	handler := seeing.Handler(func(context.Context, *webhook.Call) webhook.Answer {
		handled++
		return answers[handled-1]
	})
	var statuses []int
	for range 4 {
		statuses = append(statuses, send(t, handler, "{}", "{}").Code)
	}
	if handled != 2 || statuses[0] != 503 || statuses[1] != 200 || statuses[3] != 200 {
		t.Error(handled, statuses)
	}
}

func TestAPayloadIsReadInBothProtocols(t *testing.T) {
	for _, body := range []string{`{"cart":1}`, `{"timerId":"t","namespace":"n","attempt":1,"payload":{"cart":1}}`} {
		var payload struct{ Cart int }
		handler := verifier(t).Handler(func(_ context.Context, call *webhook.Call) webhook.Answer {
			if err := call.Decode(&payload); err != nil {
				t.Error(err)
			}
			return webhook.OK()
		})
		if send(t, handler, body, body); payload.Cart != 1 {
			t.Error(body)
		}
	}
}
