package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const origin = "leasehold/AAECAwQFBgcICQoLDA0ODw"

type tree struct {
	hashes []tlog.Hash
	size   int64
}

func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for at, index := range indexes {
		found[at] = t.hashes[index]
	}
	return found, nil
}

func (t *tree) add(leaf []byte) {
	stored := must(tlog.StoredHashes(t.size, leaf, t))
	t.hashes = append(t.hashes, stored...)
	t.size++
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// key returns the verifier key and the signer of the key whose seed is 32 times the byte.
func key(name string, fill byte) (string, note.Signer) {
	seed := bytes.Repeat([]byte{fill}, ed25519.SeedSize)
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	verifierKey := must(note.NewEd25519VerifierKey(name, public))
	hash := strings.Split(verifierKey, "+")[1]
	private := base64.StdEncoding.EncodeToString(append([]byte{1}, seed...))
	return verifierKey, must(note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", name, hash, private)))
}

func sign(text string, signers ...note.Signer) string {
	return string(must(note.Sign(&note.Note{Text: text}, signers...)))
}

type signedSize struct {
	Size int64     `json:"size"`
	Root tlog.Hash `json:"root"`
	Note string    `json:"note"`
}

type receipt struct {
	Seq     int64  `json:"seq"`
	Size    int64  `json:"size"`
	Receipt string `json:"receipt"`
}

type consistency struct {
	From  int64          `json:"from"`
	To    int64          `json:"to"`
	Proof tlog.TreeProof `json:"proof"`
}

type digest struct {
	Size    int64     `json:"size"`
	Root    tlog.Hash `json:"root"`
	Records tlog.Hash `json:"records"`
	Trees   tlog.Hash `json:"trees"`
}

type opened struct {
	Name     string `json:"name"`
	Note     string `json:"note"`
	Accepted bool   `json:"accepted"`
}

type vectors struct {
	MadeWith    string        `json:"made_with"`
	Seed        string        `json:"seed"`
	Origin      string        `json:"origin"`
	VerifierKey string        `json:"verifier_key"`
	Checkpoints []signedSize  `json:"checkpoints"`
	Receipts    []receipt     `json:"receipts"`
	Consistency []consistency `json:"consistency"`
	Notes       []opened      `json:"notes"`
	Trees       []digest      `json:"trees"`
}

// printVectors prints vectors over the frozen log of audit-v1.json, and digests of trees with the leaves
// SHA-256("leaf 0"), SHA-256("leaf 1") …
func printVectors() error {
	verifierKey, signer := key(origin, 7)
	found := vectors{
		MadeWith:    "golang.org/x/mod v0.42.0",
		Seed:        base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, ed25519.SeedSize)),
		Origin:      origin,
		VerifierKey: verifierKey,
		Notes:       notes(verifierKey, signer),
		Trees:       digests(),
	}
	addLog(&found, signer)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(found)
}

func addLog(found *vectors, signer note.Signer) {
	text := must(os.ReadFile("../audit-v1.json"))
	var log struct {
		Entries []struct {
			Hmac []byte `json:"hmac"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(text, &log); err != nil {
		panic(err)
	}
	t := &tree{}
	for size := int64(0); ; size++ {
		root := must(tlog.TreeHash(size, t))
		signed := sign(fmt.Sprintf("%s\n%d\n%s\n", origin, size, root), signer)
		found.Checkpoints = append(found.Checkpoints, signedSize{size, root, signed})
		for index := int64(0); index < size; index++ {
			lines := []string{"c2sp.org/tlog-proof@v1", "extra " + base64.StdEncoding.EncodeToString(log.Entries[index].Hmac)}
			lines = append(lines, fmt.Sprintf("index %d", index))
			for _, hash := range must(tlog.ProveRecord(size, index, t)) {
				lines = append(lines, hash.String())
			}
			text := strings.Join(append(lines, "", signed), "\n")
			found.Receipts = append(found.Receipts, receipt{index + 1, size, text})
			proof := append(tlog.TreeProof{}, must(tlog.ProveTree(size, index+1, t))...)
			found.Consistency = append(found.Consistency, consistency{index + 1, size, proof})
		}
		if size == int64(len(log.Entries)) {
			return
		}
		t.add(log.Entries[size].Hmac)
	}
}

// digests hash all proofs of a size together, in the order of the index and of the older size.
func digests() []digest {
	sizes := []int64{255, 256, 257, 300, 511, 512, 513, 600}
	for size := int64(65); size > 0; size-- {
		sizes = append([]int64{size}, sizes...)
	}
	t := &tree{}
	var found []digest
	for _, size := range sizes {
		for t.size < size {
			leaf := sha256.Sum256(fmt.Appendf(nil, "leaf %d", t.size))
			t.add(leaf[:])
		}
		records, trees := sha256.New(), sha256.New()
		for index := int64(0); index < size; index++ {
			for _, hash := range must(tlog.ProveRecord(size, index, t)) {
				records.Write(hash[:])
			}
			for _, hash := range must(tlog.ProveTree(size, index+1, t)) {
				trees.Write(hash[:])
			}
		}
		root := must(tlog.TreeHash(size, t))
		found = append(found, digest{size, root, tlog.Hash(records.Sum(nil)), tlog.Hash(trees.Sum(nil))})
	}
	return found
}

// notes are signed notes, and whether note.Open accepts them with the verifier key.
func notes(verifierKey string, signer note.Signer) []opened {
	_, witness := key("witness.example/w1", 8)
	_, otherName := key("leasehold/another", 7)
	_, otherKey := key(origin, 9)
	text := "first line\n\nünïcode — line\n"
	signed := sign(text, signer)
	cosigned := sign(text, witness, signer)
	lines := strings.SplitAfter(signed, "\n")
	line := lines[len(lines)-2]
	all := []opened{
		{Name: "signed", Note: signed},
		{Name: "cosigned by an unknown key", Note: cosigned},
		{Name: "signed by an unknown key after it", Note: sign(text, signer, witness)},
		{Name: "signed by an unknown key only", Note: sign(text, witness)},
		{Name: "signed by the same key under another name", Note: sign(text, otherName)},
		{Name: "signed by another key under the same name", Note: sign(text, otherKey)},
		{Name: "signed by both keys of the name", Note: sign(text, otherKey, signer)},
		{Name: "the text of another note", Note: strings.Replace(signed, "first", "other", 1)},
		{Name: "a text without its last line", Note: strings.Replace(signed, "ünïcode — line\n", "", 1)},
		{Name: "no line end", Note: strings.TrimSuffix(signed, "\n")},
		{Name: "an empty line at the end", Note: signed + "\n"},
		{Name: "no empty line before the signature", Note: "one line\n" + line},
		{Name: "no signature", Note: text + "\n"},
		{Name: "a hyphen for the dash", Note: strings.Replace(signed, "\n— lease", "\n- lease", 1)},
		{Name: "two spaces before the signature", Note: strings.Replace(signed, "\n— "+origin+" ", "\n— "+origin+"  ", 1)},
		{Name: "a space after the signature", Note: strings.TrimSuffix(signed, "\n") + " \n"},
		{Name: "a carriage return", Note: strings.TrimSuffix(signed, "\n") + "\r\n"},
		{Name: "carriage returns everywhere", Note: strings.ReplaceAll(signed, "\n", "\r\n")},
		{Name: "a signed control character", Note: sign("tab\there\n", signer)},
		{Name: "a signed zero byte", Note: sign("zero\x00\n", signer)},
		{Name: "a malformed line after the signature", Note: signed + "— witness.example/w1 !\n"},
		{Name: "a signature of four bytes after it", Note: signed + "— witness.example/w1 AAAAAA==\n"},
		{Name: "an unknown signature of one byte after it", Note: signed + "— witness.example/w1 AAAAAAA=\n"},
		{Name: "a name with a plus sign after it", Note: signed + "— a+b AAAAAAA=\n"},
		{Name: "no name after it", Note: signed + "—  AAAAAAA=\n"},
		{Name: "a signature without its last byte", Note: cut(text, line)},
		{Name: "16 signatures", Note: signed + strings.Repeat("— witness.example/w1 AAAAAAA=\n", 15)},
		{Name: "an empty text", Note: sign("\n", signer)},
	}
	verifier := note.VerifierList(must(note.NewVerifier(verifierKey)))
	for at := range all {
		_, err := note.Open([]byte(all[at].Note), verifier)
		all[at].Accepted = err == nil
	}
	return all
}

// cut returns the note with a signature that lacks its last byte.
func cut(text, line string) string {
	words := strings.Fields(line)
	signature := must(base64.StdEncoding.DecodeString(words[2]))
	return fmt.Sprintf("%s\n— %s %s\n", text, words[1], base64.StdEncoding.EncodeToString(signature[:len(signature)-1]))
}
