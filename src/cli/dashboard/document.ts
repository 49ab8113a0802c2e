/** Returns the document of the page. @param token base64url, which needs no escape */
export const document = (token: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="understudy-token" content="${token}">
<title>Understudy</title>
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
</head>
<body>
<div id="page"><p class="wait">The page loads ...</p></div>
</body>
</html>
`

/**
 * Leads to the address without the token, so that it is in no bookmark or screenshot. A redirect would not do: after a click in
 * another site's window, browsers send a strict cookie only with requests of our own documents.
 */
export const arrival = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=/">
<title>Understudy</title>
</head>
<body><a href="/">Understudy</a></body>
</html>
`
