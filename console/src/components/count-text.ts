/** A count such as `1 lease` or `2,000 leases`; `… leases` while the number is unknown. */
export function countText(number: number | undefined, one: string, many = `${one}s`): string {
  return number === undefined ? `… ${many}` : `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}
