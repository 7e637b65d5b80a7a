// What both sides answer with, so that they send as many bytes.

export const VALUE = 'sk-0123456789abcdef0123456789abcdef01234567';
export const LEASE_ID = '01890a5d-ac96-774b-bcce-b302099a8057';
