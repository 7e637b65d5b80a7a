/** The title of the window: the number of pending approvals, and the page. */
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
