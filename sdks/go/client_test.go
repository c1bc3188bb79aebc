package timer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
)

// serving returns a client of a service that answers with these bodies one after the other, and what was sent to it.
func serving(t *testing.T, answers ...string) (*timer.Client, *[]string) {
	t.Helper()
	var sent []string
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body))
		answer := answers[min(int(count.Add(1)), len(answers))-1]
		if status, body, found := strings.Cut(answer, " "); found && !strings.HasPrefix(answer, "{") {
			w.WriteHeader(map[string]int{"404": 404, "503": 503, "302": 302}[status])
			answer = body
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	client, err := timer.NewClient(timer.WithURL(server.URL+"/base/"), timer.WithAPIKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	return client, &sent
}

const created = `{"code":0,"message":"","data":{"id":"a","status":"pending"}}`

func TestAPayloadIsSentByteForByte(t *testing.T) {
	client, sent := serving(t, created)
	exact := json.RawMessage(`{ "b" : 1.10, "a": "<&>" }`)
	_, err := client.Timers.Create(t.Context(), timer.NewTimer{
		Key: "k", Delay: 90 * time.Second, Callback: timer.HTTP{URL: "http://a/", Payload: exact}, Metadata: map[string]string{"a": "<"},
	})
	want := `POST /base/timers {"key":"k","delay":"1m30s","callback":{"type":"http","url":"http://a/","payload":` + string(exact) +
		`},"metadata":{"a":"<"}}`
	if err != nil || (*sent)[0] != want {
		t.Errorf("%v, %s", err, *sent)
	}
}

func TestACreateKeepsItsIDOverItsRetries(t *testing.T) {
	client, sent := serving(t, "503 ", created)
	if _, err := client.Timers.Create(t.Context(), timer.NewTimer{Delay: time.Second, Callback: timer.HTTP{URL: "http://a/"}}); err != nil {
		t.Fatal(err)
	}
	if len(*sent) != 2 || (*sent)[0] != (*sent)[1] || !strings.Contains((*sent)[0], `{"id":"`) {
		t.Error(*sent)
	}
}

func TestAPayloadThatIsNoJSONIsNotSent(t *testing.T) {
	client, sent := serving(t, created)
	_, err := client.Timers.Create(t.Context(), timer.NewTimer{Callback: timer.HTTP{Payload: json.RawMessage("{")}})
	if !errors.Is(err, timer.ErrInvalid) || len(*sent) != 0 {
		t.Errorf("%v, %s", err, *sent)
	}
}

func TestTheKeyIsNotSentToWhereARedirectPoints(t *testing.T) {
	client, sent := serving(t, "302 ")
	_, err := client.Timers.Get(t.Context(), timer.ID("a"))
	if !errors.Is(err, timer.ErrUnexpected) || len(*sent) != 1 {
		t.Errorf("%v, %s", err, *sent)
	}
}

func TestAKeyMayHaveAnyCharacter(t *testing.T) {
	client, sent := serving(t, created)
	if _, err := client.Timers.Get(t.Context(), timer.Key{Key: "a/b c?ü"}); err != nil {
		t.Fatal(err)
	}
	if want := "GET /base/namespaces/default/timers/a%2Fb%20c%3F%C3%BC "; (*sent)[0] != want {
		t.Error(*sent)
	}
}

func TestAListEndsWhenTheLoopIsLeft(t *testing.T) {
	client, sent := serving(t, `{"code":0,"message":"","data":{"timers":[{"id":"a"},{"id":"b"}],"next_cursor":"c"}}`)
	for found, err := range client.Timers.List(t.Context(), timer.ListQuery{Limit: 2}) {
		if err != nil || found.ID != "a" {
			t.Fatal(found, err)
		}
		break
	}
	if len(*sent) != 1 {
		t.Error(*sent)
	}
}

func TestACanceledContextIsRecognised(t *testing.T) {
	client, _ := serving(t, created)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Timers.Get(ctx, timer.ID("a"))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, timer.ErrUnreachable) {
		t.Error(err)
	}
}

func TestAClientNeedsAKeyAndAURL(t *testing.T) {
	t.Setenv("TIMER_API_KEY", "")
	t.Setenv("API_KEY", "")
	for _, options := range [][]timer.ClientOption{
		{timer.WithURL("http://a")}, {timer.WithURL("a"), timer.WithAPIKey("k")}, {timer.WithURL("ftp://a"), timer.WithAPIKey("k")},
	} {
		if _, err := timer.NewClient(options...); err == nil {
			t.Error("it was made")
		}
	}
	t.Setenv("TIMER_URL", "https://timer.example/base")
	t.Setenv("API_KEY", "k")
	if _, err := timer.NewClient(); err != nil {
		t.Error(err)
	}
}

func TestIDsBeginWithTheirTime(t *testing.T) {
	before := time.Now().UnixMilli()
	id := string(timer.NewID())
	millis, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil || millis < before || millis > time.Now().UnixMilli() || len(id) != 36 || id[14] != '7' {
		t.Error(id, err)
	}
}
