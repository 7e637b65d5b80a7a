// Verifies checkpoints, receipts and consistency proofs of a log with the packages of Go's checksum database,
// golang.org/x/mod/sumdb/note and tlog, and makes the frozen vectors of test/vectors/checkpoints-v1.json with them.
// README.md shows how to run it.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const usage = `usage:
  go run . vectors                                       print the frozen vectors
  go run . checkpoint  VERIFIER_KEY_FILE NOTE_FILE       verify a checkpoint
  go run . receipt     VERIFIER_KEY_FILE RECEIPT_FILE    verify a receipt
  go run . consistency VERIFIER_KEY_FILE OLD_NOTE_FILE NEW_NOTE_FILE PROOF_FILE
                                                         verify that the newer checkpoint extends the older one
`

type checkpoint struct {
	origin string
	size   int64
	root   tlog.Hash
}

func main() {
	err := errors.New(usage)
	switch arguments := os.Args[1:]; {
	case len(arguments) == 1 && arguments[0] == "vectors":
		err = printVectors()
	case len(arguments) == 3 && arguments[0] == "checkpoint":
		err = verifyCheckpoint(arguments[1], arguments[2])
	case len(arguments) == 3 && arguments[0] == "receipt":
		err = verifyReceipt(arguments[1], arguments[2])
	case len(arguments) == 5 && arguments[0] == "consistency":
		err = verifyConsistency(arguments[1], arguments[2], arguments[3], arguments[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verifyCheckpoint(keyFile, noteFile string) error {
	opened, err := readCheckpoint(keyFile, noteFile)
	if err == nil {
		fmt.Printf("valid: %s has %d entries and the root %s\n", opened.origin, opened.size, opened.root)
	}
	return err
}

func verifyReceipt(keyFile, receiptFile string) error {
	text, err := os.ReadFile(receiptFile)
	if err != nil {
		return err
	}
	// The format has no empty line before the checkpoint.
	lines, signed, _ := strings.Cut(string(text), "\n\n")
	opened, err := openCheckpoint(keyFile, []byte(signed))
	if err != nil {
		return err
	}
	var index int64
	var proof tlog.RecordProof
	leaf := []byte(nil)
	for at, line := range strings.Split(lines, "\n") {
		switch {
		case at == 0 && line == "c2sp.org/tlog-proof@v1":
		case at == 1 && strings.HasPrefix(line, "extra "):
			leaf, err = base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(line, "extra "))
		case at == 2 && strings.HasPrefix(line, "index "):
			index, err = strconv.ParseInt(strings.TrimPrefix(line, "index "), 10, 64)
		case at > 2:
			var hash tlog.Hash
			hash, err = tlog.ParseHash(line)
			proof = append(proof, hash)
		default:
			err = errors.New("malformed receipt")
		}
		if err != nil {
			return err
		}
	}
	if len(leaf) != tlog.HashSize || index >= opened.size {
		return errors.New("malformed receipt")
	}
	if err := tlog.CheckRecord(proof, opened.size, opened.root, index, tlog.RecordHash(leaf)); err != nil {
		return err
	}
	fmt.Printf("valid: %s has the entry %d of %d\n", opened.origin, index+1, opened.size)
	return nil
}

func verifyConsistency(keyFile, oldFile, newFile, proofFile string) error {
	older, err := readCheckpoint(keyFile, oldFile)
	if err != nil {
		return err
	}
	newer, err := readCheckpoint(keyFile, newFile)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(proofFile)
	if err != nil {
		return err
	}
	var response struct {
		Data struct {
			Proof tlog.TreeProof `json:"proof"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &response); err != nil {
		return err
	}
	if err := tlog.CheckTree(response.Data.Proof, newer.size, newer.root, older.size, older.root); err != nil {
		return err
	}
	fmt.Printf("valid: the log of %d entries extends the one of %d\n", newer.size, older.size)
	return nil
}

func readCheckpoint(keyFile, noteFile string) (checkpoint, error) {
	signed, err := os.ReadFile(noteFile)
	if err != nil {
		return checkpoint{}, err
	}
	return openCheckpoint(keyFile, signed)
}

func openCheckpoint(keyFile string, signed []byte) (checkpoint, error) {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return checkpoint{}, err
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		return checkpoint{}, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return checkpoint{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return checkpoint{}, errors.New("not a checkpoint of this log")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return checkpoint{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return checkpoint{lines[0], size, root}, err
}
