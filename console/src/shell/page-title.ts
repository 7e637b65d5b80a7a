/** The title of the window: the page, and in front of it how many requests wait for an approval. */
let [page, waiting] = ['', 0];

function show(): void {
  document.title = `${waiting === 0 ? '' : `(${waiting}) `}${page === '' ? '' : `${page} · `}Leasehold`;
}

export function setPageTitle(title: string): void {
  page = title;
  show();
}

export function setWaitingCount(count: number): void {
  waiting = count;
  show();
}
