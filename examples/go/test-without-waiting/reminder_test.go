// A test of a reminder in 30 days that fails twice and is then delivered. It takes less than a second.
//
//	TIMER_BIN=/usr/local/bin/timer go test ./test-without-waiting
package reminder_test

import (
	"testing"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
	"github.com/timer-platform/timer-platform/sdks/go/timertest"
)

func TestAReminderIsRepeatedUntilItIsDelivered(t *testing.T) {
	dev := timertest.Start(t)
	dev.SetAnswers(timertest.Answer{Path: "/remind", Status: 503, Times: 2})

	reminder, err := dev.Client.Timers.Create(t.Context(), timer.NewTimer{
		Delay:       30 * 24 * time.Hour,
		Callback:    timer.HTTP{URL: dev.Receiver + "/remind", Payload: map[string]int{"cart": 4711}},
		RetryPolicy: &timer.RetryPolicy{MaxRetries: 3, InitialInterval: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}

	dev.Advance(30*24*time.Hour - time.Second)
	if calls := dev.Inbox(timertest.Calls{Timer: reminder.ID}); len(calls) != 0 {
		t.Fatalf("it came too early: %+v", calls)
	}

	dev.Advance(time.Hour)
	calls := dev.Inbox(timertest.Calls{Timer: reminder.ID})
	if len(calls) != 3 || calls[2].Body != `{"cart":4711}` || !calls[2].SignatureValid {
		t.Errorf("%+v", calls)
	}
	ended, err := dev.Client.Timers.Get(t.Context(), reminder.ID)
	if err != nil || ended.Status != timer.Completed {
		t.Error(ended.Status, err)
	}
}
