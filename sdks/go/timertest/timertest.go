// Package timertest runs `timer dev` for a test: a service of its own, a clock that is moved, and a receiver that shows
// every call.
//
//	func TestReminder(t *testing.T) {
//		dev := timertest.Start(t)
//		created, _ := dev.Client.Timers.Create(t.Context(), timer.NewTimer{
//			Delay: 30 * 24 * time.Hour, Callback: timer.HTTP{URL: dev.Receiver + "/reminder"},
//		})
//		dev.Advance(30 * 24 * time.Hour)
//		call := dev.WaitFor(timertest.Calls{Timer: created.ID})
//	}
package timertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
)

const (
	waitMax = 10 * time.Second
	stopMax = 10 * time.Second
)

// Dev is a service that lives as long as its test. Its methods fail the test if they cannot do what they say.
type Dev struct {
	// Client of the service.
	Client *timer.Client
	URL    string
	APIKey string
	// Receiver is a URL whose calls the inbox shows, whatever path is added to it.
	Receiver      string
	SigningSecret string

	t testing.TB
	// ahead is by how much the clock was moved, in nanoseconds.
	ahead atomic.Int64
}

// Start runs the binary named by TIMER_BIN, or `timer` on the path, in a directory of the test. It ends with the test.
func Start(t testing.TB) *Dev {
	t.Helper()
	binary := os.Getenv("TIMER_BIN")
	if binary == "" {
		binary = "timer"
	}
	command := exec.Command(binary, "dev", "--port", "0", "--ready-json")
	command.Dir = t.TempDir()
	command.Env = environment()
	log, err := os.Create(filepath.Join(command.Dir, "timer.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatalf("timertest: cannot run `%s dev` (set TIMER_BIN): %v", binary, err)
	}
	t.Cleanup(func() { stop(command) })
	return ready(t, output, log.Name())
}

// environment has nothing that configures the service: a test must not reach the database of a developer.
func environment() (kept []string) {
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "RUST_LOG"} {
		if value, found := os.LookupEnv(name); found {
			kept = append(kept, name+"="+value)
		}
	}
	return kept
}

func ready(t testing.TB, output io.Reader, log string) *Dev {
	t.Helper()
	var line struct {
		URL           string `json:"url"`
		APIKey        string `json:"api_key"`
		Receiver      string `json:"receiver"`
		SigningSecret string `json:"signing_secret"`
	}
	lines := bufio.NewReader(output)
	text, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &line)
	}
	if err != nil {
		said, _ := os.ReadFile(log)
		t.Fatalf("timertest: `timer dev` has not started: %v\n%s%s", err, text, said)
	}
	// What else it prints must not fill the pipe.
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	client, err := timer.NewClient(timer.WithURL(line.URL), timer.WithAPIKey(line.APIKey))
	if err != nil {
		t.Fatal(err)
	}
	return &Dev{Client: client, URL: line.URL, APIKey: line.APIKey, Receiver: line.Receiver, SigningSecret: line.SigningSecret, t: t}
}

func stop(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopMax, func() { _ = command.Process.Kill() })
	defer kill.Stop()
	_ = command.Wait()
}

// Advanced is what happened while the clock was moved.
type Advanced struct {
	Now       time.Time `json:"now"`
	Fired     int       `json:"fired"`
	Completed int       `json:"completed"`
	Failed    int       `json:"failed"`
	Pending   int       `json:"pending"`
	// Next is when the next timer is due; zero if none is.
	Next time.Time `json:"next"`
}

// Advance moves the clock. Everything that becomes due fires in order, and has settled when it returns.
func (d *Dev) Advance(by time.Duration) Advanced {
	d.t.Helper()
	return d.advance("by", timer.FormatDuration(by))
}

// AdvanceTo moves the clock to an instant.
func (d *Dev) AdvanceTo(at time.Time) Advanced {
	d.t.Helper()
	return d.advance("to", at.UTC().Format(time.RFC3339Nano))
}

// AdvanceToNext moves the clock to where the next timer is due.
func (d *Dev) AdvanceToNext() Advanced {
	d.t.Helper()
	return d.advance("until", "next")
}

// AdvanceUntilIdle moves the clock until no timer is left that waits.
func (d *Dev) AdvanceUntilIdle() Advanced {
	d.t.Helper()
	return d.advance("until", "idle")
}

func (d *Dev) advance(name, value string) (advanced Advanced) {
	d.t.Helper()
	d.do(http.MethodPost, "/dev/clock/advance", map[string]string{name: value}, &advanced)
	d.ahead.Store(int64(time.Until(advanced.Now)))
	return advanced
}

// Now is the time of the service, for the clock of a webhook.Verifier: the calls that it signs are of that time.
func (d *Dev) Now() time.Time { return time.Now().Add(time.Duration(d.ahead.Load())) }

// Call that the receiver got.
type Call struct {
	Seq            int64             `json:"seq"`
	At             time.Time         `json:"at"`
	LatenessMS     float64           `json:"lateness_ms"`
	TimerID        timer.ID          `json:"timer_id"`
	Attempt        int               `json:"attempt"`
	Method         string            `json:"method"`
	Path           string            `json:"path"`
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid bool              `json:"signature_valid"`
	DuplicateOf    *int64            `json:"duplicate_of"`
}

// Header of the call, for a webhook.Verifier.
func (c Call) Header() http.Header {
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	return header
}

// Calls selects calls; what is not given does not matter.
type Calls struct {
	Timer timer.ID
	Path  string
	// After is the Seq of a call: only later ones.
	After int64
}

// Inbox shows the calls that have come.
func (d *Dev) Inbox(calls Calls) []Call {
	d.t.Helper()
	return d.inbox(calls, 0)
}

// WaitFor returns the first call that matches, and fails the test if none comes within 10 seconds.
func (d *Dev) WaitFor(calls Calls) Call {
	d.t.Helper()
	found := d.inbox(calls, waitMax)
	if len(found) == 0 {
		d.t.Fatalf("timertest: no call like %+v has come", calls)
	}
	return found[0]
}

func (d *Dev) inbox(calls Calls, wait time.Duration) []Call {
	d.t.Helper()
	query := url.Values{}
	if calls.Timer != "" {
		query.Set("timer", string(calls.Timer))
	}
	if calls.Path != "" {
		query.Set("path", calls.Path)
	}
	if calls.After != 0 {
		query.Set("after", strconv.FormatInt(calls.After, 10))
	}
	if wait != 0 {
		query.Set("wait", timer.FormatDuration(wait))
	}
	var answer struct {
		Calls []Call `json:"calls"`
	}
	d.do(http.MethodGet, "/dev/inbox?"+query.Encode(), nil, &answer)
	return answer.Calls
}

// ClearInbox forgets the calls that have come.
func (d *Dev) ClearInbox() {
	d.t.Helper()
	d.do(http.MethodDelete, "/dev/inbox", nil, nil)
}

// Answer says what the receiver answers to the calls of a path; without one it answers 200.
type Answer struct {
	Path    string            `json:"path"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Delay   timer.Duration    `json:"delay,omitzero"`
	// Times is how often it answers so; 0 for always.
	Times int `json:"times,omitempty"`
	// Hang lets it answer nothing at all.
	Hang bool `json:"hang,omitempty"`
}

// SetAnswers replaces all answers of the receiver.
func (d *Dev) SetAnswers(answers ...Answer) {
	d.t.Helper()
	if answers == nil {
		answers = []Answer{}
	}
	d.do(http.MethodPut, "/dev/inbox/answers", map[string][]Answer{"answers": answers}, nil)
}

// do makes a call that only `timer dev` has.
func (d *Dev) do(method, path string, body, out any) {
	d.t.Helper()
	if err := d.try(method, path, body, out); err != nil {
		d.t.Fatalf("timertest: %s %s: %v", method, path, err)
	}
}

func (d *Dev) try(method, path string, body, out any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.URL+path, &text)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", d.APIKey)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	envelope := struct {
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{Data: out}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", response.StatusCode, envelope.Message)
	}
	return nil
}
