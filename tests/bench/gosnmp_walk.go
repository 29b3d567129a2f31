// gosnmp_walk reads columns of one OLT with gosnmp, and prints how many values there were. For benchmarks.
//
//	gosnmp_walk HOST PORT REPETITIONS OID OID ...
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gosnmp/gosnmp"
)

func main() {
	port, _ := strconv.ParseUint(os.Args[2], 10, 16)
	repetitions, _ := strconv.ParseUint(os.Args[3], 10, 32)
	olt := &gosnmp.GoSNMP{
		Target:         os.Args[1],
		Port:           uint16(port),
		Community:      "public",
		Version:        gosnmp.Version2c,
		Timeout:        60 * time.Second,
		Retries:        1,
		MaxRepetitions: uint32(repetitions),
	}
	if err := olt.Connect(); err != nil {
		fail(err)
	}
	values := 0
	count := func(gosnmp.SnmpPDU) error { values++; return nil }
	for _, oid := range os.Args[4:] {
		if err := olt.BulkWalk(oid, count); err != nil {
			fail(err)
		}
	}
	fmt.Println(values)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
