// The counter of images/counter as a Go program: GET / adds one, GET /peek does not, GET /healthz, and the gRPC health
// service for gRPC probes. Besides the count it keeps a growing map, a ticker and sleeping goroutines.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const sleepers = 100

type state struct {
	sync.Mutex
	visitors map[int64]string
	count    int64
	ticks    atomic.Int64
	awake    atomic.Int64
}

func (s *state) tick() {
	for range time.Tick(100 * time.Millisecond) {
		s.ticks.Add(1)
	}
}

func (s *state) sleep() {
	for {
		time.Sleep(200 * time.Millisecond)
		s.awake.Add(1)
	}
}

func (s *state) count1(by string) {
	s.Lock()
	defer s.Unlock()
	s.count++
	s.visitors[s.count] = by
}

func (s *state) show(response http.ResponseWriter) {
	s.Lock()
	defer s.Unlock()
	host, _ := os.Hostname()
	json.NewEncoder(response).Encode(map[string]any{
		"count": s.count, "visitors": len(s.visitors), "ticks": s.ticks.Load(), "awake": s.awake.Load(), "host": host,
	})
}

// The only answer that a probe needs: SERVING, as a handmade message of grpc.health.v1.
func health(response http.ResponseWriter, _ *http.Request) {
	response.Header().Set("Content-Type", "application/grpc")
	response.Header().Set("Trailer", "Grpc-Status")
	response.Write([]byte{0, 0, 0, 0, 2, 0x08, 0x01})
	response.Header().Set("Grpc-Status", "0")
}

func main() {
	s := &state{visitors: map[int64]string{}}
	go s.tick()
	for range sleepers {
		go s.sleep()
	}
	http.HandleFunc("POST /grpc.health.v1.Health/Check", health)
	http.HandleFunc("GET /healthz", func(response http.ResponseWriter, _ *http.Request) { fmt.Fprint(response, "ok") })
	http.HandleFunc("GET /peek", func(response http.ResponseWriter, _ *http.Request) { s.show(response) })
	http.HandleFunc("GET /{$}", func(response http.ResponseWriter, request *http.Request) {
		s.count1(request.UserAgent())
		s.show(response)
	})
	server := http.Server{Addr: ":8080", Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	log.Fatal(server.ListenAndServe())
}
