// A receiver: it verifies signatures, drops repetitions, and asks for a later attempt while it is closed.
//
//	SIGNING_SECRET=whsec_… go run ./receiver 127.0.0.1:9000
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/timer-platform/timer-platform/sdks/go/webhook"
)

func main() {
	verifier, err := webhook.NewVerifier(os.Getenv("SIGNING_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	// One process remembers in memory. Several share a table, and record the call in the transaction that does the work.
	verifier.Seen = webhook.NewMemory(100_000)

	http.Handle("POST /remind", verifier.Handler(remind))
	http.Handle("POST /poll", verifier.Handler(poll))

	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// remind is for timers of the webhook protocol: any 2xx completes them.
func remind(_ context.Context, call *webhook.Call) webhook.Answer {
	if strings.Contains(string(call.Body), "closed") {
		return webhook.RetryAfter(time.Minute)
	}
	fmt.Printf("%s attempt %d, %s late: %s\n", call.TimerID, call.Attempt, call.Lateness(), call.Body)
	return webhook.OK()
}

// poll is for timers of the timer protocol: the answer says when to call again.
func poll(_ context.Context, call *webhook.Call) webhook.Answer {
	var job struct {
		Name string `json:"name"`
		Done bool   `json:"done"`
	}
	if err := call.Decode(&job); err != nil {
		return webhook.Failed()
	}
	if !job.Done {
		return webhook.Again(time.Now().Add(time.Hour))
	}
	fmt.Println(job.Name, "is done")
	return webhook.Done()
}
